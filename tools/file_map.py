"""Writes docs/map.md: every module of evenfeed with the first line of its docstring, room by room.

`docs/conf.py` runs it before each build of the docs; `python tools/file_map.py` prints the page.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "evenfeed"
PAGE = ROOT / "docs" / "map.md"

# In the order of the data flow, as ARCHITECTURE.md draws it. Rooms that are not listed come last.
ORDER = (
    *("dataset", "plan", "rewrite", "runtime", "feeding", "replicas", "strategy", "cluster"),
    *("formats", "images", "tensors", "core", "demo"),
)

HEAD = """\
# Map of the files

Generated from the docstrings by `tools/file_map.py`. Rooms come in the order of the data flow.
"""


def page() -> str:
    """Return the page as Markdown."""
    rooms = sorted({path.parent for path in modules()}, key=_place)
    return "\n".join([HEAD, *(_section(room) for room in rooms)])


def modules() -> list[Path]:
    """Return all modules of the package."""
    return sorted(PACKAGE.rglob("*.py"))


def first_line(path: Path) -> str:
    """Return the first line of a module's docstring; an empty text if it has none."""
    text = ast.get_docstring(ast.parse(path.read_text()))
    return text.splitlines()[0] if text else ""


def _place(room: Path) -> tuple[int, str]:
    name = room.relative_to(PACKAGE).as_posix()
    top = name.partition("/")[0]
    return ORDER.index(top) if top in ORDER else len(ORDER), name


def _section(room: Path) -> str:
    return "\n".join(_lines(room)) + "\n"


def _lines(room: Path) -> Iterator[str]:
    name = room.relative_to(PACKAGE).as_posix()
    depth = name.count("/") + 2
    yield f"{'#' * depth} {'evenfeed' if name == '.' else name}/\n"
    yield first_line(room / "__init__.py") + "\n"
    for path in sorted(room.glob("*.py")):
        if path.name != "__init__.py":
            yield f"- `{path.name}`: {first_line(path)}"


if __name__ == "__main__":
    print(page())
