"""Tells whether two plans make the same elements, by their code and data.

A state is made often, so `fingerprint` looks at shapes alone. What is kept in files for other programs must
be told apart better: a function that was changed makes other elements.
"""

import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from functools import partial
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any, Final, TypeAlias, cast

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array, is_tensor, shortened
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.lazy import hashlib
from evenfeed.core.specs import TypeSpec
from evenfeed.core.structure import DATA, outline
from evenfeed.formats.reader import DataFile
from evenfeed.plan.node import Node
from evenfeed.runtime.functions.inner_datasets import InnerDatasets
from evenfeed.runtime.functions.purity import parts_of_function
from evenfeed.runtime.functions.row_function import RowFunction

Tell: TypeAlias = Callable[[bytes], None]

_DEPTH: Final = 20  # whatever lies deeper in the objects of a program is told by its type

# What these hold is told by its name: it changes with their version, not with the program.
_LIBRARIES: Final = sys.stdlib_module_names | {"evenfeed", "jax", "jaxlib", "numpy"}


def identity(*values: object) -> str:
    """Return a short text that plans and functions have in common only if they make the same.

    Seeds are left out: most are drawn anew in each program. So is the name of a cache's files.
    """
    digest = hashlib.blake2b(digest_size=12)
    _describe(values, digest.update, {}, _DEPTH)
    return digest.hexdigest()


def _describe(value: Any, tell: Tell, seen: dict[int, tuple[int, Any]], depth: int) -> None:
    tell(f"<{type(value).__name__}>".encode())
    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        tell(repr(value).encode())
    elif is_tensor(value):
        _describe_array(value, tell)
    elif id(value) in seen:
        tell(f"as {seen[id(value)][0]}".encode())  # a function may call itself
    elif depth:
        if isinstance(value, Node) and value.depth > depth:
            _describe_below(value, tell, seen)
        seen[id(value)] = len(seen), value  # held, so that no other value gets its id
        for part in _parts(value):
            _describe(part, tell, seen, depth - 1)


def _describe_below(plan: Node, tell: Tell, seen: dict[int, tuple[int, Any]]) -> None:
    """Tell what a deep plan reads, so that no node of it is left out."""
    for node in plan.bottom_up():
        if node is not plan:
            _describe(node, tell, seen, _DEPTH)


def _describe_array(value: Any, tell: Tell) -> None:
    tell(f"{value.dtype} {value.shape}".encode())
    try:
        array: Array = np.asarray(value)
    except Exception:  # noqa: BLE001 - a tracer of JAX's that somebody kept: it has no values
        return
    if array.dtype == dtypes.string:
        tell(repr(array.tolist()).encode())
    else:
        tell(cast("Any", np.ascontiguousarray(array).reshape(-1).view(np.uint8).data))


def _parts(value: Any) -> Iterable[Any]:
    """Return what a value is made of."""
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
            return value.__code__, *parts_of_function(value)
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
        return sorted(map(repr, cast("set[Any]", value)))  # their order is another in each program
    if isinstance(value, (list, tuple)):
        return cast("list[Any]", value)
    held = getattr(value, "__dict__", None)
    kind = cast("type[Any]", type(value))
    name = getattr(value, "__name__", None)
    return (kind, name) if _is_of_library(kind) or held is None else (kind, held)


def _is_of_library(value: Any) -> bool:
    return str(value.__module__).partition(".")[0] in _LIBRARIES


# A seed is part of the state itself; of what structure elements are, their spec says. A file may have
# another name on another machine.
_NOT_MEANING = {"origin", "passes", "seed", "structure", "filename", "folder", "effects"}


def fingerprint(plan: Node) -> str:
    """Return a short text that two plans have in common only if they read alike."""
    known: dict[int, str] = {}
    for node in plan.bottom_up():
        known[id(node)] = _digest(_parts_of(node, known))
    return known[id(plan)]


def _digest(value: Any) -> str:
    return hashlib.blake2b(repr(value).encode(), digest_size=8).hexdigest()


def _parts_of(node: Node, known: dict[int, str]) -> Any:
    named = [(part.name, getattr(node, part.name)) for part in fields(node)]
    parts = [(n, _described(v, known)) for n, v in named if n not in _NOT_MEANING]
    return type(node).__name__, str(node.element_spec), parts


def check_state(state: dict[str, Any], version: int, plan: Node) -> None:
    """Raise unless `state` was taken of an iterator over this plan by this version."""
    if type(state) is not dict or "version" not in state:
        raise InvalidArgumentError(
            f"{shortened(state)} is no state of an iterator.",
            fix="pass what get_state() returned; if it was written as text, json.loads(text).",
        )
    if state["version"] != version:
        raise InvalidArgumentError(
            f"The state has version {state['version']}, but this evenfeed reads {version}.",
            fix="read it with the evenfeed that wrote it, or begin anew.",
        )
    if state["plan"] != fingerprint(plan):
        raise InvalidArgumentError(
            "The state was taken of an iterator over another dataset.",
            fix="make the dataset as it was made then: the same steps, sizes and shapes.",
        )


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
    return str(value) if kind in ("int", "float", "str", "bool", "NoneType") else kind
