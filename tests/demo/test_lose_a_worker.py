"""The demo on workers: one is killed, and no row is lost or repeated."""

import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from evenfeed.command.main import main

# Programs without types, as users write them.
lose_a_worker: Any = import_module("evenfeed.demo.lose_a_worker")
report: Any = import_module("evenfeed.demo.report")


@pytest.mark.slow
def test_a_worker_is_killed_and_every_row_is_used_once_in_each_epoch() -> None:
    demo = [sys.executable, "-m", "evenfeed", "demo"]
    command = [*demo, "--workers", "2", "--kill", "--epochs", "2"]
    ran = subprocess.run(command, check=False, capture_output=True, text=True, timeout=180)
    said = ran.stdout + ran.stderr
    assert ran.returncode == 0, said
    assert "worker 1 dies after step 26: kill -9" in said
    assert "start 2: workers: 1, after step 20 of 46" in said
    for epoch in (1, 2):
        assert f"epoch {epoch}: 1,437 rows, each exactly once" in said
    assert re.search(r"the devices waited for input \d+\.\d% of the time", said)
    found = re.search(r"report: (\S+)", said)
    assert found is not None
    page = Path(found[1]).read_text()
    shutil.rmtree(Path(found[1]).parent)
    assert page.count("<polyline") == 4  # two charts, two starts
    assert "Start 2: 1 worker, steps 21 to 46." in page
    assert "Traceback" not in said


def test_a_lost_row_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [list(range(lose_a_worker.TRAINING_ROWS - 1))]
    starts = [report.Start(1, [report.Taken(1, 1, rows, 0.5, 0.1, 1.0)])]
    with pytest.raises(SystemExit, match="epoch 1: rows were lost or repeated"):
        lose_a_worker.check_rows(starts, 1, 1)


def test_the_report_names_every_replica_and_writes_numbers_out() -> None:
    steps = [report.Taken(number, 1, [[1, 2], [3]], 0.5, 0.1, 0.0001) for number in (1, 2)]
    page = report.page_of([report.Start(1, steps)], 3, 0.9)
    assert "Start 1: 1 worker, steps 1 to 2." in page
    assert "<th>replica 0</th><th>replica 1</th>" in page
    assert "from 0 to 0.5." in page
    assert "from 0 to 30,000." in page


def test_a_worker_can_only_be_killed_if_another_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["demo", "--kill"])
    assert "--kill needs --workers 2 or more" in capsys.readouterr().err
