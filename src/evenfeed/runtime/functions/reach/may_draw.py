"""Finds out whether a function can draw from a random generator, by following what its code refers to.

A changed generator does not say who drew: another thread may have. A function that cannot draw is not blamed.
"""

import random
from collections import OrderedDict, defaultdict, deque
from collections.abc import Iterator
from contextlib import suppress
from dis import get_instructions
from functools import lru_cache, partial
from types import (
    BuiltinFunctionType,
    CodeType,
    FunctionType,
    GetSetDescriptorType,
    MappingProxyType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any, Final, cast, final

import numpy as np

from evenfeed.core.captures import EMPTY, bound_values, names_used

GENERATORS: Final = (random.Random, np.random.Generator, np.random.RandomState)

# A function that refers to more objects than this counts as one that may draw.
_MOST: Final = 2000

# Code of these libraries calls no user function but those that it gets, and draws from no generator of the program.
_ARRAYS: Final = frozenset({"evenfeed", "jax", "jaxlib", "ml_dtypes", "numpy"})
_STANDARD: Final = frozenset(
    {"_io", "_thread", "abc", "array", "base64", "binascii", "bisect", "bz2", "cmath", "collections"}
    | {"contextlib", "copy", "dataclasses", "datetime", "decimal", "enum", "fractions", "functools", "gzip"}
    | {"hashlib", "heapq", "io", "itertools", "json", "logging", "lzma", "math", "numbers", "operator", "os"}
    | {"pathlib", "posixpath", "re", "string", "struct", "threading", "time", "types", "typing"}
    | {"unicodedata", "warnings", "zlib", "builtins"}
)  # fmt: skip
# Except for these parts of them.
_DRAWING_MODULES: Final = (
    *("random", "numpy.random", "keras", "evenfeed.keras", "evenfeed.keras_training"),
)
_DRAWING_PARTS: Final = frozenset({("numpy", "random"), ("evenfeed", "keras")})
# With these builtins, code can refer to things that it does not name.
_DYNAMIC: Final = frozenset(
    {"__import__", "breakpoint", "compile", "eval", "exec", "getattr", "globals", "locals", "vars"}
)

_MAPPINGS: Final = (dict, OrderedDict, defaultdict, MappingProxyType)
_CONTAINERS: Final = (list, tuple, set, frozenset, deque)
_PLAIN: Final = frozenset(
    {bool, int, float, complex, str, bytes, bytearray, range, slice, type(None), type(...)}
    | {type(NotImplemented), object, GetSetDescriptorType, MemberDescriptorType, CodeType}
)
# Entries of a class that its methods do not use.
_CLASS_ENTRIES: Final = frozenset({"__annotations__", "__dataclass_fields__", "_abc_impl"})

# The module of what JAX traced.
_TRACES: Final = "jax._src.core"


def may_draw(function: object) -> bool:
    """Return True unless it is certain that a function draws from no random generator of the program.

    Code that cannot be followed may draw.
    """
    reach = _Reach()
    reach.add(function)
    try:
        reach.follow()
    except _MayDrawError:
        return True
    return False


@final
class _MayDrawError(Exception):
    """The code refers to a generator, or to something that cannot be followed."""


@final
class _Reach:
    """The objects that a function refers to, directly and through other objects."""

    def __init__(self) -> None:
        self._seen: dict[
            int, Any
        ] = {}  # holds the objects, so that no other gets the identity of one
        self._pending: list[Any] = []
        self._modules: dict[str, ModuleType] = {}
        self._libraries: set[str] = set()
        self._names: set[str] = set()

    def add(self, *values: Any) -> None:
        for value in values:
            if type(value) not in _PLAIN and id(value) not in self._seen:
                self._seen[id(value)] = value
                self._pending.append(value)
        if len(self._seen) > _MOST:
            raise _MayDrawError

    def follow(self) -> None:
        """Follow all objects. Any code may take a name that occurs somewhere from any of the modules."""
        while self._pending:
            while self._pending:
                self._follow(self._pending.pop())
            for module in list(self._modules.values()):
                held = vars(module)
                self.add(*(held[name] for name in self._names if name in held))
        if any((top, name) in _DRAWING_PARTS for top in self._libraries for name in self._names):
            raise _MayDrawError

    def _follow(self, value: Any) -> None:
        match value:
            case ModuleType():
                self._follow_module(value)
            case FunctionType():
                self._follow_function(value)
            case MethodType():
                self.add(value.__self__, value.__func__)
            case BuiltinFunctionType():
                self.add(value.__self__ if value.__self__ is not None else _of_nowhere(value))
            case partial():
                held = cast("partial[Any]", value)
                self.add(held.func, held.args, held.keywords)
            case staticmethod() | classmethod():
                self.add(cast("staticmethod[..., Any]", value).__func__)
            case property():
                self.add(value.fget, value.fset, value.fdel)
            case type():
                self._follow_class(cast("type[Any]", value))
            case _:
                self._follow_object(value)

    def _follow_module(self, module: ModuleType) -> None:
        name = module.__name__
        if _draws(name) or ("__getattr__" in vars(module) and not _is_known(name)):
            raise _MayDrawError
        if _is_known(name):
            self._libraries.add(name.partition(".")[0])
        else:
            self._modules[name] = module

    def _follow_function(self, function: FunctionType) -> None:
        self.add(*(value for value in bound_values(function) if value is not EMPTY))
        self.add(*vars(function).values())
        names = function.__globals__
        module = str(names.get("__name__"))
        if _draws(module):
            raise _MayDrawError
        if _is_known(module):
            return
        used = _used_globals(function.__code__)
        if used is None or any(name in _DYNAMIC and name not in names for name in used):
            raise _MayDrawError
        self._names.update(names_used(function.__code__))
        self.add(*(names[name] for name in used if name in names))

    def _follow_class(self, kind: type[Any]) -> None:
        for each in kind.__mro__:
            if issubclass(each, GENERATORS) or _draws(str(each.__module__)):
                raise _MayDrawError
            if not _is_known(str(each.__module__)):
                entries = vars(cast("type[Any]", each)).items()
                self.add(*(entry for name, entry in entries if name not in _CLASS_ENTRIES))
        self.add(type(kind))

    def _follow_object(self, value: Any) -> None:
        kind = cast("type[Any]", type(value))
        if kind in _MAPPINGS:
            self.add(*value.keys(), *value.values(), getattr(value, "default_factory", None))
        elif kind in _CONTAINERS:
            self.add(*value)
        elif kind.__module__ == _TRACES:
            return  # it refers to nothing that its function does not
        elif kind is np.ndarray:
            self.add(*(value.ravel().tolist() if value.dtype.hasobject else ()))
        elif kind.__module__ in ("builtins", "itertools") or _is_made_from_python(value):
            raise _MayDrawError  # what an iterator calls is unknown
        else:
            self.add(kind, *_attributes(value))


def _of_nowhere(function: BuiltinFunctionType) -> Any:
    """Return nothing for a C function of a known library. Others may draw."""
    if not _is_known(str(function.__module__)) or _draws(str(function.__module__)):
        raise _MayDrawError
    return None


def _is_made_from_python(value: Any) -> bool:
    """Return True for a ufunc of `np.frompyfunc`, which does not show its function."""
    return isinstance(value, np.ufunc) and getattr(np, value.__name__, None) is not value


def _attributes(value: Any) -> Iterator[Any]:
    """Yield the attributes of an object, without calling code of its class."""
    with suppress(AttributeError):
        yield from list(object.__getattribute__(value, "__dict__").values())
    for kind in cast("type[Any]", type(value)).__mro__:
        for slot in vars(kind).values():
            if isinstance(slot, MemberDescriptorType):
                with suppress(AttributeError):  # it has no value yet
                    yield slot.__get__(value)
    if type(value).__module__.startswith(
        "jaxlib"
    ):  # a compiled function has the one that it was made from
        yield getattr(value, "__wrapped__", None)


@lru_cache(maxsize=1024)
def _is_known(module: str) -> bool:
    return module.partition(".")[0] in _ARRAYS | _STANDARD and not _draws(module)


@lru_cache(maxsize=1024)
def _draws(module: str) -> bool:
    return any(module == each or module.startswith(f"{each}.") for each in _DRAWING_MODULES)


@lru_cache(maxsize=1024)
def _used_globals(code: CodeType) -> frozenset[str] | None:
    """Return the names of the globals that code uses; None if it also imports something."""
    used: set[str] = set()
    for step in get_instructions(code):
        if step.opname == "IMPORT_NAME":
            return None
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            used.add(step.argval)
    for each in code.co_consts:
        inner = _used_globals(each) if isinstance(each, CodeType) else ()
        if inner is None:
            return None
        used.update(inner)
    return frozenset(used)
