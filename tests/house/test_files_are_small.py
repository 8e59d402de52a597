"""A file holds one idea, and one idea fits in about 400 lines."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("src", "tests", "tools", "examples", "benchmarks")
LIMIT = 400

# A file that may be longer, and why.
EXCEPTIONS = {
    "tests/test_dataset.py": "mirrors the fluent class",
}

FILES = sorted(
    str(path.relative_to(ROOT)) for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")
)


@pytest.mark.parametrize("name", FILES)
def test_a_file_is_small(name):
    lines = len((ROOT / name).read_text().splitlines())
    assert lines <= LIMIT or name in EXCEPTIONS, (
        f"{lines} lines: is there more than one idea in it?"
    )


def test_exceptions_are_still_needed():
    long = {name for name in FILES if len((ROOT / name).read_text().splitlines()) > LIMIT}
    assert set(EXCEPTIONS) == long
