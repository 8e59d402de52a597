"""Writes docs/names.md: for every public name of TensorFlow, whether it is the same, differs, or what to use instead.

`docs/conf.py` runs it before each build of the docs; `python tools/names_page.py` prints the page.
"""

import json
import re
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import evenfeed
from evenfeed.core.names.use_instead import USE_INSTEAD, advice_for

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "names.md"
RECORDED = json.loads((ROOT / "tests" / "oracle" / "tensorflow_names.json").read_text())

HEAD = f"""\
# Names

Every public name of TensorFlow {RECORDED["version"]}, generated from the namespaces by `tools/names_page.py`: it is the same, it
is the same except for what [Differences](differences.md) says, or the table says what to use instead. Asking for a name that is not there raises
an `AttributeError` with the same advice.
"""

# Shown first; the others follow by name, and the names without a namespace come last.
FIRST = (
    *("data", "data.Dataset", "data.experimental", "io", "io.gfile", "image"),
    *("distribute", "distribute.experimental", "distribute.cluster_resolver", "config"),
)


def page() -> str:
    """Return the page as Markdown."""
    return "\n".join([HEAD, *map(_section, namespaces()), _instead()])


def namespaces() -> list[str]:
    """Return the paths of all namespaces that TensorFlow has too, in the order of the page.

    `compat.v1` has other names than TensorFlow 2, and is not compared.
    """
    others = [path for path in _inner("", evenfeed) if path in RECORDED["names"]]
    return [*FIRST, *sorted(set(others) - set(FIRST)), ""]


def _inner(path: str, module: Any) -> list[str]:
    found: list[str] = []
    for name in getattr(module, "__all__", ()):  # the modules of Keras have none
        inner = getattr(module, name)
        if isinstance(inner, ModuleType):
            below = f"{path}.{name}".strip(".")
            found += [below, *_inner(below, inner)]
    return found


def own_names(path: str) -> list[str]:
    """Return the public names of a namespace, or the public methods of a class."""
    found = _found(path)
    names = getattr(found, "__all__", None) or [name for name in dir(found) if name[0] != "_"]
    return sorted(names)


def missing_names(path: str) -> list[str]:
    """Return the names that TensorFlow has in a namespace and evenfeed does not."""
    return sorted(set(RECORDED["names"][path]) - set(own_names(path)))


def _found(path: str) -> Any:
    """Return a namespace or a class by the path that users write."""
    found: Any = evenfeed
    for part in filter(None, path.split(".")):
        found = getattr(found, part)
    return found


def is_there(path: str) -> bool:
    """Return True if evenfeed has a name."""
    try:
        _found(path)
    except AttributeError:
        return False
    return True


def left_out(path: str) -> list[str]:
    """Return the paths of all names below a namespace that evenfeed does not have, nested ones by the outermost."""
    if path and not is_there(path):
        return []
    found: list[str] = [] if path == "data.Dataset" else RECORDED["names"][path]
    return [full for name in found if not is_there(full := f"{path}.{name}".strip("."))]


def _section(path: str) -> str:
    own, known = own_names(path), set(RECORDED["names"][path])
    same = [name for name in own if name in known]
    differing = [name for name in same if _difference(path, name)]
    lines = [
        f"## {f'tf.{path}' if path else 'tf'}\n",
        f"Same: {_listed(name for name in same if name not in differing)}",
    ]
    if differing:
        links = (f"[`{name}`](differences.md#{_difference(path, name)})" for name in differing)
        lines.append(f"The same, except for what Differences says: {', '.join(links)}.\n")
    if added := [name for name in own if name not in known]:
        lines.append(f"Only evenfeed has: {_listed(added)}")
    if missing := missing_names(path):
        rows = [f"| `{name}` | {advice_for(f'{path}.{name}'.strip('.'))} |" for name in missing]
        lines += ["**Not there:**\n", "| name | use instead |", "|---|---|", *rows, ""]
    return "\n".join(lines)


def _listed(names: Any) -> str:
    return ", ".join(f"`{name}`" for name in names) + ".\n"


def _difference(path: str, name: str) -> str | None:
    """Return the section of the page of differences that mentions a name."""
    return _differences().get(f"{path}.{name}".strip("."))


@cache
def _differences() -> dict[str, str]:
    """Return the section that mentions each name in backticks; a name without a namespace, under all that have it."""
    found: dict[str, str] = {}
    section = ""
    owners: dict[str, list[str]] = {}
    for path in namespaces():
        # Differences mention dtypes and errors where they tell about functions.
        for name in own_names(path) if path not in ("dtypes", "errors") else ():
            owners.setdefault(name, []).append(f"{path}.{name}".strip("."))
    for line in (ROOT / "docs" / "differences.md").read_text().splitlines():
        if line.startswith("## "):
            section = re.sub(r"[^a-z0-9]+", "-", line[3:].lower()).strip("-")
        for token in re.findall(r"`(?:tf\.)?([A-Za-z_][\w.]*)", line):
            name = token.rpartition(".")[2]
            for full in owners.get(name, []):
                if full == token or full.endswith(f".{token}"):
                    found.setdefault(full, section)
    return found


def _instead() -> str:
    """Return the tables of what to use for names and whole namespaces that are not there."""
    missing = {name: text for name, text in sorted(USE_INSTEAD.items()) if not is_there(name)}
    for path, names in RECORDED["names"].items():
        outer = path.rpartition(".")[0]
        if is_there(outer) and not is_there(path) and names:
            missing[path] = advice_for(path) or ""
    rows = [f"| `tf.{name}` | {text} |" for name, text in sorted(missing.items())]
    return "\n".join(["## Instead of\n", "| not there | what to use |", "|---|---|", *rows, ""])


if __name__ == "__main__":
    print(page())
