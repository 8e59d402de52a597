"""Runs a program on several workers, in real processes, and returns the results of each."""

import json
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any

PROGRAMS = Path(__file__).parent / "programs"


@cache
def seen_by_workers(
    program: str, workers: int = 2, replicas: int = 2, *args: str
) -> dict[int, Any]:
    """Return what each worker of a program prints as `seen {...}`. All tests share one run."""
    run = [sys.executable, "-m", "evenfeed", "run", "--workers", str(workers)]
    done = subprocess.run(
        [*run, "--replicas", str(replicas), str(PROGRAMS / program), *args],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    lines = [line for line in done.stdout.splitlines() if "seen {" in line]
    return {int(line.split("]")[0][-1]): json.loads(line.partition("seen ")[2]) for line in lines}
