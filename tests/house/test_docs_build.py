"""The docs build without a warning: every reference leads somewhere, every page is reachable."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
@pytest.mark.timeout(330)
def test_docs_build_without_warnings(tmp_path):
    # Like html, without the pages around the text, which take a third of the time, and without the types in signatures,
    # which take another: a type that leads nowhere is no warning.
    sphinx = [
        sys.executable,
        "-m",
        "sphinx",
        "-q",
        "-W",
        "-b",
        "json",
        "-D",
        "autodoc_typehints=none",
    ]
    done = subprocess.run(
        [*sphinx, ROOT / "docs", tmp_path], capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, done.stderr
    page = json.loads((tmp_path / "api" / "data.fjson").read_text())
    assert 'class="sig sig-object' in page["body"]
