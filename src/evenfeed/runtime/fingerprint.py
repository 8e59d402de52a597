"""Identifies plans: `fingerprint` by structure and shapes, `identity` by code and data.

States are saved often, so they carry the cheap `fingerprint`. Files that other programs may read need `identity`: a
function that was edited makes other elements.
"""

import copyreg
import json
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import fields
from functools import partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Final, TypeAlias, cast

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.captures import captured_values
from evenfeed.core.conversion import Array, is_tensor, shortened
from evenfeed.core.errors import DataLossError, InvalidArgumentError
from evenfeed.core.lazy import hashlib
from evenfeed.core.specs import TypeSpec
from evenfeed.core.structure import DATA, outline
from evenfeed.formats.reader import DataFile
from evenfeed.plan.node import Node
from evenfeed.runtime.functions.inner_datasets import InnerDatasets
from evenfeed.runtime.functions.row_function import RowFunction

Update: TypeAlias = Callable[[bytes], None]

_KEYS: Final = {"plan", "run", "at", "rows"}  # of a state

_DEPTH: Final = 20  # objects nested deeper are identified by their type only

# Their contents are identified by name: they change with the library's version, not with the program.
_LIBRARIES: Final = sys.stdlib_module_names | {"evenfeed", "jax", "jaxlib", "numpy"}
# Objects of the classes in these modules are data of the program, although the classes are of a library.
_MODULES_OF_DATA: Final = {
    *("builtins", "collections", "datetime", "decimal", "fractions", "re"),
    *("pathlib", "pathlib._local"),  # since Python 3.13
    *("evenfeed", "evenfeed.data", "evenfeed.lookup", "evenfeed.lookup_tables.tables"),
}


def identity(*values: object) -> str:
    """Return a short digest that values share only if they make the same elements.

    Seeds are left out, because most are drawn again in each program. So are the file names of caches.
    """
    digest = hashlib.blake2b(digest_size=12)
    _describe(values, digest.update, {}, _DEPTH)
    return digest.hexdigest()


def _describe(value: Any, update: Update, seen: dict[int, tuple[int, Any]], depth: int) -> None:
    update(f"<{type(value).__name__}>".encode())
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        update(repr(value).encode())
    elif is_tensor(value):
        _describe_array(value, update)
    elif id(value) in seen:
        update(f"as {seen[id(value)][0]}".encode())  # a function may refer to itself
    elif depth:
        if isinstance(value, Node) and value.depth > depth:
            _describe_below(value, update, seen)
        seen[id(value)] = len(seen), value  # keep a reference, so that the id is not reused
        for part in _parts(value):
            _describe(part, update, seen, depth - 1)


def _describe_below(plan: Node, update: Update, seen: dict[int, tuple[int, Any]]) -> None:
    """Describe all nodes below a deep plan, so that the depth limit skips none."""
    for node in plan.bottom_up():
        if node is not plan:
            _describe(node, update, seen, _DEPTH)


def _describe_array(value: Any, update: Update) -> None:
    update(f"{value.dtype} {value.shape}".encode())
    try:
        array: Array = np.asarray(value)
    except Exception:  # noqa: BLE001 - a leaked JAX tracer has no values
        return
    if array.dtype == dtypes.string:
        update(repr(array.tolist()).encode())
    else:
        update(cast("Any", np.ascontiguousarray(array).reshape(-1).view(np.uint8).data))


def _parts(value: Any) -> Iterable[Any]:
    """Return the parts that identify a value."""
    match value:
        case Node():
            return _parts_of_node(value)
        case RowFunction() | InnerDatasets():
            return value.asked
        case DataFile():
            return (value.identity,)
        case TypeSpec() | np.dtype():
            return (str(cast("Any", value)),)
        case CodeType():
            return value.co_code, value.co_names, value.co_consts
        case MethodType():
            return value.__func__, value.__self__
        case partial():
            held = cast("partial[Any]", value)
            return held.func, held.args, held.keywords
        case FunctionType() if not _is_of_library(value):
            return value.__code__, *captured_values(value)
        case type() if not _is_of_library(value):
            members = vars(cast("type[Any]", value)).values()
            return value.__name__, [part for part in members if isinstance(part, FunctionType)]
        case FunctionType() | type() | ModuleType():
            return (value.__name__,)
        case _:
            return _parts_of_data(value)


def _parts_of_node(node: Node) -> Iterable[Any]:
    for part in fields(node):
        if part.name == "structure":
            yield outline(getattr(node, part.name), DATA)
        elif part.compare and part.name not in ("seed", "filename"):
            yield getattr(node, part.name)


def _parts_of_data(value: Any) -> Iterable[Any]:
    if isinstance(value, Mapping):
        return list(cast("Mapping[Any, Any]", value).items())
    if isinstance(value, (set, frozenset)):
        return sorted(map(repr, cast("set[Any]", value)))  # their order differs between programs
    if isinstance(value, (list, tuple)):
        return cast("list[Any]", value)
    held = getattr(value, "__dict__", None)
    kind = cast("type[Any]", type(value))
    name = getattr(value, "__name__", None)
    if name is None and (held is None or _is_of_library(kind)) and _is_data(kind):
        return kind, name, _pickled(value)
    return (kind, name) if _is_of_library(kind) or held is None else (kind, held)


def _is_data(kind: type[Any]) -> bool:
    """Return True if objects of a class are data, which a program chooses, and no state of a library."""
    return not _is_of_library(kind) or kind.__module__ in _MODULES_OF_DATA


def _reduced(value: Any) -> Any:
    return value.__reduce_ex__(4)


def _pickled(value: Any) -> list[Any]:
    """Return what pickle would store of an object; nothing if it refuses."""
    try:
        reduced = copyreg.dispatch_table.get(cast("type[Any]", type(value)), _reduced)(value)
    except Exception:  # noqa: BLE001 - a generator, a lock and the like
        return []
    parts: Iterable[Any] = (
        [reduced] if isinstance(reduced, str) else cast("tuple[Any, ...]", reduced)
    )
    return [_listed(part) for part in parts]


def _listed(part: Any) -> Any:
    return list(cast("Iterator[Any]", part)) if isinstance(part, Iterator) else part


def _is_of_library(value: Any) -> bool:
    return str(value.__module__).partition(".")[0] in _LIBRARIES


# Seeds are part of the state itself, and the spec describes the structure of elements and the dtype of row splits. Files
# may have other names on another machine. A position in the batches of all workers suits any number of them.
_NOT_IN_FINGERPRINT = {
    "origin",
    "identity",
    "nesting",
    "counts_passes",
    "seed",
    "structure",
    "filename",
    "folder",
    "effects",
    "row_splits_dtype",
    "share",
}
_SINCE_SHARES_ARE_LEFT_OUT = 4  # the version of states
# Once fields of these nodes. States that were saved then have them in their fingerprints.
_FORMER_FIELDS = {"Cache": [("memory", "Memory")], "IgnoreErrors": [("ignored", "Ignored")]}
# Windows hold the class of datasets, which is of another class now.
_FORMER_KINDS = {"_DatasetClass": "ABCMeta"}


def fingerprint(plan: Node, version: int | None = None) -> str:
    """Return a short digest that plans share only if they have the same steps, sizes and specs.

    Args:
        plan: The plan.
        version: The version of a state that holds it; None for the current one.
    """
    omitted = _NOT_IN_FINGERPRINT
    if version is not None and version < _SINCE_SHARES_ARE_LEFT_OUT:
        omitted = omitted - {"share"}
    known: dict[int, str] = {}
    for node in plan.bottom_up():
        known[id(node)] = _digest(_parts_of(node, known, omitted))
    return known[id(plan)]


def _digest(value: Any) -> str:
    return hashlib.blake2b(repr(value).encode(), digest_size=8).hexdigest()


def _parts_of(node: Node, known: dict[int, str], omitted: AbstractSet[str]) -> Any:
    named = [(part.name, getattr(node, part.name)) for part in fields(node)]
    parts = [(n, _described(v, known)) for n, v in named if n not in omitted]
    name = type(node).__name__
    return name, str(node.element_spec), parts + _FORMER_FIELDS.get(name, [])


def check_state(state: dict[str, Any], versions: range, plan: Node) -> None:
    """Raise unless `state` is of one of these versions and was taken from an iterator over this plan."""
    if type(state) is not dict or "version" not in state:
        raise InvalidArgumentError(
            f"state must be an iterator state, but got {shortened(state)}.",
            fix="pass what get_state() returned; decode JSON text with json.loads(text).",
        )
    if state["version"] not in versions:
        known = f"{versions[0]} to {versions[-1]}"
        raise InvalidArgumentError(
            f"The state has version {state['version']}, but this evenfeed reads versions {known}.",
            fix="use the evenfeed version that wrote it, or start over.",
        )
    if state.get("plan") != fingerprint(plan, state["version"]):
        raise InvalidArgumentError(
            "The state belongs to an iterator over a different dataset.",
            fix="build the dataset with the same steps, sizes and shapes as when the state was taken.",
        )
    if not (state.keys() >= _KEYS and _is_whole(state)):
        raise DataLossError(
            "The state was changed after get_state() returned it.",
            fix="pass the state as it was, or start over with iter(dataset).",
        )


def sealed(state: dict[str, Any]) -> dict[str, Any]:
    """Return a state with its checksum."""
    return {**state, "sum": _checksum(state)}


def _is_whole(state: dict[str, Any]) -> bool:
    """Return True if a state has its checksum, or none: as in earlier versions, and in states of distributed iterators."""
    rest = {key: value for key, value in state.items() if key != "sum"}
    return "sum" not in state or state["sum"] == _checksum(rest)


def _checksum(state: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(state, sort_keys=True).encode())


def _described(value: Any, known: dict[int, str]) -> Any:
    kind = type(value).__name__
    if isinstance(value, Node):
        return known[id(value)] if id(value) in known else fingerprint(value)
    if isinstance(value, DataFile):
        return value.fingerprint
    if kind in ("list", "tuple", "Share"):
        return [_described(part, known) for part in value]
    if kind == "ndarray":
        return f"{value.shape} {value.dtype}"
    if kind in ("int", "float", "str", "bool", "NoneType"):
        return str(value)
    return _FORMER_KINDS.get(kind, kind)
