"""The objects below a root, numbered and named by the attributes that lead to them."""

import json
from collections.abc import Collection, Mapping
from dataclasses import astuple, dataclass, field
from typing import Any, Final, NoReturn, final

from evenfeed.checkpoints.array_values import Slot
from evenfeed.checkpoints.tracking import ArrayInfo, ArrayLeaf, StateLeaf, children_of, tracked
from evenfeed.core.conversion import shortened
from evenfeed.core.errors import UnimplementedError, described

ROOT: Final = 0

# The format of the stored graph.
_VERSION: Final = 1

_ATTRIBUTES: Final = "/.ATTRIBUTES/"


@final
@dataclass(frozen=True)
class LiveObject:
    """An object of the program.

    Attributes:
        value: The object.
        path: The shortest way to it, as names of attributes; empty for the root.
        children: The numbers of the objects below it, by name.
        leaf: Its own value.
    """

    value: Any
    path: str
    leaf: ArrayLeaf | StateLeaf | None
    children: dict[str, int] = field(default_factory=dict[str, int])


@final
@dataclass(frozen=True)
class SavedObject:
    """An object in a checkpoint.

    Attributes:
        path: Its path in the program that saved it.
        children: The numbers of the objects below it, by name.
        arrays: Its arrays, by name.
        has_state: Whether it has a state.
    """

    path: str
    children: Mapping[str, int]
    arrays: Mapping[str, ArrayInfo]
    has_state: bool

    @property
    def has_value(self) -> bool:
        """Whether it has a value of its own."""
        return bool(self.arrays) or self.has_state


def identity(value: Any) -> Any:
    """Return a key that is the same for the same object only."""
    return (id(value.holder), value.name) if isinstance(value, Slot) else id(value)


def live_objects(root: Any) -> list[LiveObject]:
    """Return the objects below a root, each once, those with shorter paths first."""
    numbers: dict[Any, int] = {identity(root): ROOT}
    found: list[LiveObject] = [_live(root, "")]
    for live in found:  # grows meanwhile
        for name, child in children_of(live.value).items():
            if not isinstance(name, str):
                _reject_key(name, live.path)
            key = identity(child)
            if key not in numbers:
                numbers[key] = len(found)
                found.append(_live(child, f"{live.path}/{_escaped(name)}".lstrip("/")))
            live.children[name] = numbers[key]
    return found


def _live(value: Any, path: str) -> LiveObject:
    known = tracked(value)
    return LiveObject(value, path, None if known is None else known.leaf)


def _escaped(name: str) -> str:
    return name.replace(".", "..").replace("/", ".S")


def array_key(path: str, name: str) -> str:
    """Return the key under which an array is stored."""
    return f"{path}{_ATTRIBUTES}{name}"


def _reject_key(name: object, path: str) -> NoReturn:
    raise ValueError(
        described(
            f"The dict {path!r} has the key {shortened(name)}, but objects are saved by names.",
            fix="use a string as the key, or a list.",
        )
    )


def written(
    objects: list[LiveObject],
    arrays: Mapping[int, Mapping[str, ArrayInfo]],
    states: Collection[int],
) -> str:
    """Return the graph as text: for each object its path, children and values."""
    nodes = [
        {
            "path": live.path,
            "children": live.children,
            "arrays": {name: astuple(info) for name, info in arrays.get(number, {}).items()},
            "state": number in states,
        }
        for number, live in enumerate(objects)
    ]
    return json.dumps({"version": _VERSION, "objects": nodes})


def read_graph(text: str, path: str) -> list[SavedObject]:
    """Read a graph back."""
    graph: dict[str, Any] = json.loads(text)
    if graph["version"] > _VERSION:
        raise UnimplementedError(
            f"A newer version of evenfeed wrote the checkpoint {path}.",
            fix="install that version: pip install --upgrade evenfeed.",
        )
    return [
        SavedObject(node["path"], node["children"], _infos(node["arrays"]), node["state"])
        for node in graph["objects"]
    ]


def _infos(arrays: dict[str, Any]) -> dict[str, ArrayInfo]:
    return {
        name: ArrayInfo(key, tuple(shape), dtype) for name, (key, shape, dtype) in arrays.items()
    }
