"""No damaged file kills or hangs the process, or raises anything but an evenfeed error."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests.every_format import FORMATS

PROGRAM = Path(__file__).with_name("programs") / "damage_files.py"
ROOT = Path(__file__).parents[2]


# Formats that C++ libraries read get a process each, which shows the one that crashed.
ALONE = ["parquet", "arrow", "arrow stream", "array_record"]


@pytest.mark.parametrize(
    "names", [*([name] for name in ALONE), [name for name in FORMATS if name not in ALONE]]
)
def test_a_file_with_any_bytes_damaged_is_read_or_refused(tmp_path, names):
    said = subprocess.run(
        [sys.executable, str(PROGRAM), str(tmp_path), "100", *names],
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT)},
    )
    assert not said.returncode, said.stderr
    errors = dict(line.rsplit(":", 1) for line in said.stdout.splitlines())
    assert [*errors] == names
    assert all(int(count) or name == "lines " for name, count in errors.items())
