"""Records the public names of TensorFlow, which docs/names.md compares with evenfeed's. Run it with TensorFlow."""

import json
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

FILE = Path(__file__).with_name("tensorflow_names.json")

# Kept out: what is not TensorFlow 2's own API, or another library's.
SKIPPED = {"compat", "keras", "raw_ops", "lite", "estimator"}


def namespaces(module: Any, path: str = "", depth: int = 3) -> dict[str, Any]:
    """Return the public namespaces below a module by their paths."""
    found = {path: module}
    for name in public_names(module):
        inner = getattr(module, name)
        if depth and isinstance(inner, ModuleType) and name not in SKIPPED:
            found |= namespaces(inner, f"{path}.{name}".strip("."), depth - 1)
    return found


def public_names(owner: Any) -> list[str]:
    return sorted(name for name in dir(owner) if not name.startswith("_"))


if __name__ == "__main__":
    tf: Any = import_module("tensorflow")
    owners = namespaces(tf) | {"data.Dataset": tf.data.Dataset}
    names = {path: public_names(owner) for path, owner in owners.items()}
    FILE.write_text(json.dumps({"version": tf.__version__, "names": names}, indent=0) + "\n")
