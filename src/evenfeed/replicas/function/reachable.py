"""What a traced function reaches through globals, attributes and containers: how to read each again.

A compiled loop holds the variables and Python values that its trace has met. If one of their names is bound to another
object, the function must be traced again. Only names that its code mentions count, and that of functions and methods that
it reaches. Libraries are not searched.

This is for steps that plain Python code runs. In an `evenfeed.function`, names keep the meaning that they had in its
trace, as in TensorFlow.
"""

import sys
from collections.abc import Callable, Iterable
from functools import cached_property, lru_cache, partial
from types import CodeType, FunctionType, MemberDescriptorType, MethodType, ModuleType
from typing import Any, Final, cast, final
from weakref import WeakSet

import numpy as np

from evenfeed.core.captures import names_used
from evenfeed.core.lazy import dis
from evenfeed.replicas.function.closures import NotComparable, is_array, opened
from evenfeed.replicas.function.function import Function, Method
from evenfeed.replicas.function.loops.guarded_calls import MISSING, VALUES, HeldBytes
from evenfeed.replicas.function.loops.guarded_objects import LIBRARIES
from evenfeed.replicas.function.staging import Unstaged

# How to read a value, and what it was.
Place = tuple[Callable[[], Any], Any]

# What keeps the programs of steps that plain Python code runs.
watching: Final[WeakSet[Function]] = WeakSet()

_MOST_PLACES: Final = 10_000
_MOST_BYTES: Final = 1 << 26  # of NumPy arrays: takes 25 ms to compare
_CONSTRUCTORS: Final = frozenset(["__init__", "__new__", "__post_init__"])
_FOR_PEOPLE: Final = frozenset(["__del__", "__repr__", "__str__"])
_WRAPPERS: Final = (staticmethod, classmethod, property, cached_property)


def reached_places(function: Callable[..., Any]) -> list[Place]:
    """Return the places that a function reads its variables and Python values from.

    The closure of the function itself is left out: it is part of the key that recognizes the function.

    Raises:
        Unstaged: There are too many, or too large arrays among them.
    """
    names: frozenset[str] = frozenset()
    while True:  # code that is found may mention attributes of objects that were met before
        walk = _Walk(names)
        walk.follow(function)
        if walk.names <= names:
            return walk.places()
        names |= walk.names


@final
class _Walk:
    def __init__(self, known: frozenset[str]) -> None:
        self._known = known
        self.names: set[str] = set()
        self._stored: set[str] = set()
        self._found: list[tuple[Callable[[], Any], Any, str]] = []
        self._pending: list[tuple[Any, bool]] = []
        self._seen: dict[tuple[int, bool], Any] = {}  # the objects too: an id may be used again

    def places(self) -> list[Place]:
        """Return what was found, except for numbers that the code itself counts up."""
        counters = self._stored
        return _with_contents(
            (read, value)
            for read, value, name in self._found
            if name not in counters or not isinstance(value, VALUES)
        )

    def follow(self, function: Callable[..., Any]) -> None:
        self._pending.append((function, True))
        while self._pending:
            value, is_keyed = self._pending.pop()
            place = id(value), is_keyed
            if place not in self._seen and not isinstance(value, VALUES) and not is_array(value):
                self._seen[place] = value
                self._visit(value, is_keyed)

    def _visit(self, value: Any, is_keyed: bool) -> None:
        match value:
            case FunctionType():
                self._visit_function(value, is_keyed)
            case MethodType():
                self._push([value.__func__, value.__self__], is_keyed)
            case partial():
                held = cast("partial[Any]", value)
                self._push([held.func, *held.args, *held.keywords.values()], is_keyed)
            case Function():
                self._push([value.python_function], is_keyed)
            case Method():
                self._push([value.function, value.__self__], False)
            case property():
                self._push([value.fget], False)
            case cached_property():
                self._push([cast("cached_property[Any]", value).func], False)
            case staticmethod() | classmethod():
                self._push([cast("staticmethod[..., Any]", value).__func__], False)
            case ModuleType():
                if not _is_library(value.__name__):
                    self._note_entries(vars(value), self._known)
            case type():
                self._visit_class(value, constructs=True)
            case _:
                self._visit_object(value, is_keyed)

    def _push(self, values: Iterable[Any], is_keyed: bool) -> None:
        self._pending += [(value, is_keyed) for value in values]

    def _note(self, read: Callable[[], Any], value: Any, name: str = "") -> None:
        if len(self._found) >= _MOST_PLACES:
            raise Unstaged(f"it refers to more than {_MOST_PLACES} Python objects")
        self._found.append((read, value, name))
        self._pending.append((value, False))

    def _note_entries(self, space: dict[str, Any], names: Iterable[str]) -> None:
        for name in names:
            if name in space:
                self._note(partial(space.get, name, MISSING), space[name], name)

    def _visit_function(self, function: FunctionType, is_keyed: bool) -> None:
        for cell in function.__closure__ or ():
            try:
                value = cell.cell_contents
            except ValueError:  # the variable has no value yet
                continue
            if is_keyed:
                self._push([value], True)
            else:
                self._note(partial(getattr, cell, "cell_contents"), value)
        defaults = [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
        self._push(defaults, is_keyed)
        space = function.__globals__
        if _is_library(str(space.get("__name__"))):
            return
        mentioned = _names_in(function.__code__)
        self.names |= mentioned
        if function.__name__ not in _CONSTRUCTORS:
            self._stored |= _names_stored(function.__code__)
        self._note_entries(space, mentioned)

    def _visit_class(self, kind: type, *, constructs: bool) -> None:
        own = [each for each in kind.__mro__ if not _is_library(each.__module__)]
        bases = [each for each in kind.__mro__ if each not in own and each is not object]
        for each in own:
            members = vars(each)
            for name, member in members.items():
                if name in self._known or (
                    isinstance(member, (FunctionType, *_WRAPPERS))
                    and _may_be_called(name, bases, constructs)
                ):
                    self._note(partial(members.get, name, MISSING), member, name)

    def _visit_object(self, value: Any, is_keyed: bool) -> None:
        kind = cast("type[Any]", type(value))
        parts = _parts_of_key(value) if is_keyed else None
        if parts is not None:
            self._push(parts, True)
        elif isinstance(value, (list, dict, set, frozenset, tuple)):
            self._visit_container(cast("Any", value))
        if kind.__module__.partition(".")[0] in LIBRARIES:
            return
        self._visit_class(kind, constructs=False)
        own: Any = getattr(cast("Any", value), "__dict__", None)
        has_own = parts is None and isinstance(own, dict)
        held = cast("dict[str, Any]", own) if has_own else {}
        for name in self._known:
            # An attribute of the class may get one of the object before it.
            member = next(
                (vars(each)[name] for each in kind.__mro__ if name in vars(each)), MISSING
            )
            if isinstance(member, MemberDescriptorType):
                read = partial(getattr, value, name, MISSING)
                self._note(read, read(), name)
            elif name in held or member is not MISSING:
                self._note(partial(held.get, name, MISSING), held.get(name, MISSING), name)

    def _visit_container(self, value: Any) -> None:
        if isinstance(value, tuple):
            self._push(cast("tuple[Any, ...]", value), False)
            return
        self._note(partial(len, value), len(value))
        if isinstance(value, dict):
            for key, each in cast("dict[Any, Any]", value).items():
                self._note(partial(dict[Any, Any].get, cast("Any", value), key, MISSING), each)
        elif isinstance(value, list):
            entries = cast("list[Any]", value)
            for index, each in enumerate(entries):
                self._note(partial(entries.__getitem__, index), each)
        else:
            for each in cast("set[Any]", value):
                self._note(partial(value.__contains__, each), True)
                self._push([each], False)


def _with_contents(found: Iterable[Place]) -> list[Place]:
    """Return places with what is in their NumPy arrays: these can be changed in place."""
    places: list[Place] = []
    met: set[int] = set()
    size = 0
    for read, value in found:
        array: Any = value
        # An array with several names is compared where it was met first.
        if not isinstance(value, np.ndarray) or array.dtype.hasobject or id(array) in met:
            places.append((read, array))
            continue
        size += array.nbytes
        if size > _MOST_BYTES:
            raise Unstaged(
                f"it refers to NumPy arrays of more than {_MOST_BYTES >> 20} MiB, "
                "which may change in place between two calls; keep them in variables"
            )
        met.add(id(array))
        places.append((read, HeldBytes(array)))
    return places


def _parts_of_key(value: Any) -> "list[Any] | None":
    """Return the parts of a container that are in the key of a function that closes over it."""
    try:
        found = opened(value)
    except NotComparable:
        return None
    return None if found is None else list(found.parts)


def _may_be_called(name: str, bases: Iterable[type], constructs: bool) -> bool:
    """Return True if a method may be called without its name: by an operator, or by the library of a base class."""
    if name in _CONSTRUCTORS:
        return constructs
    is_special = name.startswith("__") and name.endswith("__")
    overrides = any(name in vars(base) for base in bases)
    return name not in _FOR_PEOPLE and (is_special or overrides)


@lru_cache(maxsize=1024)
def _names_in(code: CodeType) -> frozenset[str]:
    """Return the names of globals and attributes that code mentions, also as strings (for `getattr`)."""
    found = set(names_used(code))
    for const in code.co_consts:
        if isinstance(const, str) and const.isidentifier():
            found.add(const)
        elif isinstance(const, CodeType):
            found |= _names_in(const)
    return frozenset(found)


@lru_cache(maxsize=1024)
def _names_stored(code: CodeType) -> frozenset[str]:
    stores = ("STORE_ATTR", "STORE_GLOBAL")
    found = {step.argval for step in dis.get_instructions(code) if step.opname in stores}
    inner = [_names_stored(const) for const in code.co_consts if isinstance(const, CodeType)]
    return frozenset(found).union(*inner)


@lru_cache(maxsize=1024)
def _is_library(module: str) -> bool:
    top = module.partition(".")[0]
    if top in LIBRARIES or top in sys.stdlib_module_names:
        return True
    file = str(getattr(sys.modules.get(module), "__file__", None))
    return "site-packages" in file or "dist-packages" in file
