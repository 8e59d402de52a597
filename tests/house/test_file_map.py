"""The map of the files is made of docstrings: every module has one whose first line stands alone."""

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAP = runpy.run_path(str(ROOT / "tools" / "file_map.py"))
MODULES = MAP["modules"]()


@pytest.mark.parametrize(
    "path", MODULES, ids=lambda path: path.relative_to(MAP["PACKAGE"]).as_posix()
)
def test_a_module_says_in_one_line_what_it_is(path):
    line = MAP["first_line"](path)
    assert line.endswith("."), f"the first line is {line!r}"
    assert len(line) <= 120


def test_every_module_is_on_the_map():
    page = MAP["page"]()
    named = [path for path in MODULES if path.name != "__init__.py"]
    assert page.count("\n- `") == len(named)
    assert all(f"- `{path.name}`: {MAP['first_line'](path)}" in page for path in named)


def test_every_room_has_its_place_in_the_order():
    rooms = {path.parent.name for path in MAP["PACKAGE"].glob("*/__init__.py")}
    assert set(MAP["ORDER"]) <= rooms
