"""`tools/check.py` gives pytest the files with slow tests by the name of the mark: none may get it elsewhere."""

import runpy
from pathlib import Path

ROOT = Path(__file__).parents[2]
MARK = "mark." + "slow"


def test_the_mark_is_in_files_of_tests_only() -> None:
    files = [path for top in ("src", "tests") for path in (ROOT / top).rglob("*.py")]
    marked = {str(path.relative_to(ROOT)) for path in files if MARK in path.read_text()}
    found = runpy.run_path(str(ROOT / "tools" / "check.py"))
    assert marked == set(found["slow_files"]())
    assert set(found["LONG"]) <= marked
