"""Writes docs/names.md: every public name of evenfeed, and the names of TensorFlow that evenfeed does not have.

`docs/conf.py` runs it before each build of the docs; `python tools/names_page.py` prints the page.
"""

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import evenfeed
from evenfeed.core.names.use_instead import USE_INSTEAD

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "names.md"
RECORDED = json.loads((ROOT / "tests" / "oracle" / "tensorflow_names.json").read_text())

HEAD = f"""\
# Names

Generated from the namespaces by `tools/names_page.py`, and compared with the names that TensorFlow
{RECORDED["version"]} has there. Asking for a name that is not there raises an `AttributeError` that says what to use.
[Differences](differences.md) lists what behaves differently.
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


def _is_there(path: str) -> bool:
    try:
        _found(path)
    except AttributeError:
        return False
    return True


def _section(path: str) -> str:
    own, known = own_names(path), set(RECORDED["names"][path])
    lines = [
        f"## {f'tf.{path}' if path else 'tf'}\n",
        _listed(name for name in own if name in known),
    ]
    if added := [name for name in own if name not in known]:
        lines.append(f"Only evenfeed has: {_listed(added)}")
    if missing := missing_names(path):
        lines.append(f"**Not there:** {_listed(missing)}")
    return "\n".join(lines)


def _listed(names: Any) -> str:
    return ", ".join(f"`{name}`" for name in names) + ".\n"


def _instead() -> str:
    """Return the table of what to use for names that are not there."""
    missing = {name: text for name, text in sorted(USE_INSTEAD.items()) if not _is_there(name)}
    rows = [f"| `tf.{name}` | {text} |" for name, text in missing.items()]
    return "\n".join(["## Instead of\n", "| not there | what to use |", "|---|---|", *rows, ""])


if __name__ == "__main__":
    print(page())
