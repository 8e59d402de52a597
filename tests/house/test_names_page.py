"""The page of names lists every public name, and none that TensorFlow has and evenfeed has not as if it were there."""

import operator
import runpy
from pathlib import Path
from typing import Any

import pytest

import evenfeed

ROOT = Path(__file__).parents[2]
TOOL: dict[str, Any] = runpy.run_path(str(ROOT / "tools" / "names_page.py"))
SECTIONS = dict(part.split("\n", 1) for part in ("\n" + TOOL["page"]()).split("\n## ")[1:])


@pytest.mark.parametrize("path", TOOL["namespaces"]())
def test_a_section_lists_what_is_there_and_what_is_not(path: str) -> None:
    there, _, not_there = SECTIONS[f"tf.{path}" if path else "tf"].partition("**Not there:**")
    assert all(f"`{name}`" in there for name in TOOL["own_names"](path))
    missing = TOOL["missing_names"](path)
    assert all(f"`{name}`" in not_there for name in missing)
    assert not any(f"`{name}`" in there for name in missing)


def test_names_that_are_not_there_say_what_to_use() -> None:
    rows = SECTIONS["Instead of"].splitlines()[3:]
    assert rows
    for row in rows:
        path = row.split("`")[1].removeprefix("tf.")
        with pytest.raises(AttributeError):
            operator.attrgetter(path)(evenfeed)
