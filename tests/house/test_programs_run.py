"""The README's program, the examples and the benchmarks run, and print what they say they print."""

import os
import re
import runpy
import signal
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# Other tests here run these, and look at what they print.
TOLD = {"quickstart.py", "resume.py"}
EXAMPLES = sorted({path.name for path in (ROOT / "examples").glob("*.py")} - TOLD)

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]


def output_of(path: Path, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, str(path), *arguments],
        capture_output=True,
        text=True,
        timeout=580,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def readme_blocks(language: str) -> list[str]:
    text = (ROOT / "README.md").read_text()
    return re.findall(rf"```{language}\n(.*?)```", text, re.DOTALL)


def test_the_readme_shows_the_quickstart_whole():
    program = readme_blocks("python")[0]
    assert program == (ROOT / "examples" / "quickstart.py").read_text()
    assert len(program.splitlines()) < 15


def test_the_quickstart_prints_what_the_readme_says():
    assert output_of(ROOT / "examples" / "quickstart.py") == readme_blocks("text")[0]


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs(name: str) -> None:
    if name == "pytorch.py":
        pytest.importorskip("torch")
    assert output_of(ROOT / "examples" / name)


def test_the_example_of_workers_runs_on_two():
    command = ["-m", "evenfeed", "run", "--workers", "2", "--replicas", "2"]
    done = subprocess.run(
        [sys.executable, *command, str(ROOT / "examples" / "workers.py")],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for worker, rows in enumerate((12, 10)):
        assert f"[worker {worker}] 4 replicas; this worker saw {rows} of 22 rows" in done.stdout


def steps_in(output: str) -> dict[int, str]:
    """Return what `examples/resume.py` printed of each step."""
    return {int(n): rest for n, rest in re.findall(r"step (\d+): (sum .*)", output)}


@pytest.mark.skipif(sys.platform == "win32", reason="no process groups")
def test_the_example_of_resuming_is_killed_and_continues_on_another_number_of_workers(tmp_path):
    program = ROOT / "examples" / "resume.py"
    whole = steps_in(output_of(program, "--folder", str(tmp_path / "whole")))
    folder = ["--folder", str(tmp_path / "killed")]
    command = ["-m", "evenfeed", "run", "--workers", "2", str(program), *folder, "--pause", "0.1"]
    with subprocess.Popen(
        [sys.executable, *command], stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as killed:
        assert killed.stdout is not None
        before = ""
        while "step 7:" not in before:
            line = killed.stdout.readline()
            assert line, before
            before += line
        os.killpg(killed.pid, signal.SIGKILL)
    after = output_of(program, *folder)
    (saved,) = re.findall(r"continuing after step (\d+)", after)
    assert 7 <= int(saved) < len(whole)
    assert list(steps_in(after)) == list(range(int(saved) + 1, len(whole) + 1))
    assert steps_in(before).items() | steps_in(after).items() <= whole.items()


def jobs() -> int:
    """Return how many jobs the benchmarks have."""
    text = (ROOT / "benchmarks" / "run.py").read_text()
    listed = text.partition("\nJOBS = {")[2].partition("\n}")[0]
    found = len(re.findall(r'^    "\w+": ', listed, re.MULTILINE))
    assert found > 10
    return found


def test_the_benchmarks_run():
    output = output_of(ROOT / "benchmarks" / "run.py", "--quick")
    assert len(re.findall(r"^\| (?:\w|\().*\| -", output, re.MULTILINE)) == jobs()


def test_the_training_benchmark_runs():
    output = output_of(ROOT / "benchmarks" / "training.py", "--quick")
    assert len(re.findall(r"^\| .*\| \d", output, re.MULTILINE)) == 3 + 2 + 4


def test_the_benchmark_of_many_steps_runs():
    output = output_of(ROOT / "benchmarks" / "many_steps.py", "--quick")
    assert len(re.findall(r"^\| .*\| [124] \| \d", output, re.MULTILINE)) == 6


def test_the_feeding_benchmark_runs():
    output = output_of(ROOT / "benchmarks" / "feeding.py", "--quick")
    assert len(re.findall(r"^\| \w+ \| \d", output, re.MULTILINE)) == 4


def test_the_resuming_benchmark_runs():
    output = output_of(ROOT / "benchmarks" / "resuming.py", "--quick")
    assert len(re.findall(r"^\| [\w ]+ \| evenfeed \| \d", output, re.MULTILINE)) == 3


def test_the_benchmark_of_images_runs():
    output = output_of(ROOT / "benchmarks" / "images.py", "--quick", "adjust_contrast")
    assert len(re.findall(r"^\| adjust_contrast \| \w+ \| \w+ \| \d", output, re.MULTILINE)) == 4


def test_the_workers_benchmark_runs():
    output = output_of(ROOT / "benchmarks" / "workers.py", "--quick")
    assert len(re.findall(r"^\| [\w ]+ \| \d", output, re.MULTILINE)) == 5


def test_jobs_that_are_measured_alone_get_rows_beside_the_others():
    tool = runpy.run_path(str(ROOT / "benchmarks" / "run.py"))
    before = tool["written"](tool["BEGIN"], tool["END"])
    title = tool["JOBS"]["map_chain"][0]
    table = f"| job | evenfeed |\n|---|---|\n| {title} | 9 M |\n"
    once = tool["with_rows"](before, table)
    again = tool["with_rows"](once, table)
    rows, old = tool["rows_in"](again), tool["rows_in"](before)
    assert list(rows) == list(old)
    assert rows == old | {title: f"| {title} | 9 M |"}
    earlier = [line for line in before.splitlines() if line.startswith(tool["LATER"])]
    kept = [line for line in again.splitlines() if line.startswith(tool["LATER"])]
    assert kept[1:] == earlier
    assert kept[0].endswith(f": {title}.")
    assert again.endswith(before[before.index("| first element") :])


def test_the_benchmark_table_was_made_by_the_script():
    text = (ROOT / "benchmarks" / "README.md").read_text()
    made = text.split("<!-- made by run.py -->")[1].split("<!-- end -->")[0]
    assert len(re.findall(r"^\| ", made, re.MULTILINE)) == 1 + jobs() + 4
