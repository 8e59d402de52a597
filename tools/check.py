"""Runs every check of the project, one after the other, and says how long each took.

Words choose among them: `python tools/check.py types lint`.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
PYTHON = sys.executable
BIN = Path(PYTHON).parent

CORES = min(4, os.cpu_count() or 1)


def pytest(processes: int, mark: str, *more: str) -> list[str]:
    """Return the command for the tests of a mark."""
    return [
        *(PYTHON, "-m", "pytest", "-q", "-m", mark),
        *("-n", str(processes)),
        # A file of tests stays in one process: its tests share what they compiled.
        *("--dist", "loadfile"),
        # So that who adds a slow one sees it.
        *("--durations=10", "--durations-min=5"),
        *more,
    ]


def slow_files() -> list[str]:
    """Return the files with slow tests, those with the longest tests first.

    Each process would else import all tests to find the few. A long test that begins last runs alone at the end.
    """
    marked = [
        path for path in (ROOT / "tests").rglob("test_*.py") if "mark.slow" in path.read_text()
    ]
    names = sorted(str(path.relative_to(ROOT)) for path in marked)
    return sorted(names, key=lambda name: LONG.index(name) if name in LONG else len(LONG))


# Files whose slow tests take the most time, or that have a test of half a minute or more. Only the order depends on it.
LONG = [
    "tests/replicas/test_running.py",
    "tests/house/test_programs_run.py",
    "tests/cluster/test_exits.py",
    "tests/cluster/test_failures.py",
    "tests/strategy/test_many_steps_on_workers.py",
    "tests/strategy/test_mesh_on_workers.py",
    "tests/house/test_docs_build.py",
    "tests/strategy/test_training_on_workers.py",
    "tests/keras_training/test_keras_on_workers.py",
    "tests/reliability/test_kills.py",
    "tests/reliability/test_long_runs.py",
    "tests/demo/test_lose_a_worker.py",
]

CHECKS = {
    "format": [PYTHON, "-m", "ruff", "format", "--check", "-q"],
    "lint": [PYTHON, "-m", "ruff", "check", "-q"],
    "types": [PYTHON, "-m", "pyright", "--pythonpath", PYTHON],
    "layers": [str(BIN / "lint-imports"), "--no-cache"],
    # Some tests wait for threads or processes of their own: one more process uses the cores meanwhile.
    "tests: the fast majority": pytest(CORES + 1, "not slow"),
    # By default, files with few tests come last; here some of them take the longest.
    "tests: the slow ones": pytest(CORES + 1, "slow", "--no-loadscope-reorder", *slow_files()),
}


def main(words: list[str]) -> int:
    """Run the checks that the words name, and return how many failed."""
    chosen = {name: c for name, c in CHECKS.items() if not words or any(w in name for w in words)}
    with tempfile.TemporaryDirectory() as programs:
        results = {name: run(name, command, programs) for name, command in chosen.items()}
    for name, (seconds, code) in results.items():
        print(f"{seconds:7.1f} s  {'ok    ' if code == 0 else 'FAILED'}  {name}")
    return sum(code != 0 for _, code in results.values())


def run(name: str, command: list[str], programs: str) -> tuple[float, int]:
    """Run one check and return its seconds and its exit code."""
    print(f"== {name}", flush=True)
    start = time.perf_counter()
    code = subprocess.run(command, cwd=ROOT, check=False, env=environment(programs)).returncode
    return time.perf_counter() - start, code


def environment(programs: str) -> dict[str, str]:
    """Return the environment of a check: our own tools first, and no word about newer versions."""
    return {
        **os.environ,
        "PYTHONDONTWRITEBYTECODE": "",  # else each of hundreds of processes compiles the same files
        "PATH": f"{BIN}{os.pathsep}{os.environ.get('PATH', '')}",
        "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1",
        # Hundreds of processes run the same small programs: each is compiled once. That halves their time.
        "JAX_COMPILATION_CACHE_DIR": programs,
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
