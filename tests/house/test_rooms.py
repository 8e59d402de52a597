"""A newcomer finds a file by its name: no folder is crowded, and no name stands for two things."""

import ast
from collections import Counter
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "src" / "evenfeed"
FILES = sorted(PACKAGE.rglob("*.py"))
MOST_FILES = 25

# The rooms in which a family of transformations has one file name: a node and its operator always, the methods often.
FAMILIES = {"dataset", "plan", "runtime/operators", "runtime/operators/inner", "runtime/positions"}

# Names that TensorFlow has twice.
TWICE_IN_TENSORFLOW = {
    "dtypes.py",
    "errors.py",
    "experimental.py",
    "gfile.py",
    "Tensor",
    "TFRecordWriter",
    "Unique",
}


def room(path):
    return path.parent.relative_to(PACKAGE).as_posix()


def twice(named):
    """Return the names that stand in several rooms, the families of transformations aside."""
    rooms = {}
    for name, path in named:
        rooms.setdefault(name, []).append(room(path))
    return {
        name: found
        for name, found in rooms.items()
        if len(found) > 1 and name not in TWICE_IN_TENSORFLOW and not set(found) <= FAMILIES
    }


def test_no_folder_is_crowded():
    assert max(Counter(map(room, FILES)).values()) <= MOST_FILES


def test_no_two_files_have_one_name():
    assert not twice((path.name, path) for path in FILES if path.name != "__init__.py")


def test_no_two_classes_have_one_name():
    classes = [
        (node.name, path)
        for path in FILES
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.ClassDef) and not node.name.startswith("_")
    ]
    assert not twice(classes)
