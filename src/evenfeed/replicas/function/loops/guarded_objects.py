"""The user's own objects in code that is traced once instead of being run in each iteration of a loop.

Operators, tests, loops and reads of attributes call methods of their classes, which are Python code too. An iterator that
was made before the loop gives another value in each iteration.
"""

import sys
from collections.abc import Iterable
from collections.abc import Iterator as PythonIterator
from functools import cached_property, lru_cache
from inspect import getattr_static
from types import FunctionType
from typing import Any, Final

from evenfeed.core.iteration import Iterator
from evenfeed.replicas.function.staging import Unstaged

# Their functions compute, or become part of the traced program.
LIBRARIES: Final = frozenset(
    ["equinox", "evenfeed", "flax", "jax", "jaxlib", "keras", "math", "numpy", "operator", "optax"]
)
# Special methods that computing with an object does not call.
_PASSIVE: Final = frozenset(
    f"__{name}__"
    for name in [
        *("call", "copy", "deepcopy", "del", "delattr", "getattr", "getattribute", "getnewargs"),
        *(
            "getstate",
            "init",
            "init_subclass",
            "new",
            "post_init",
            "reduce",
            "reduce_ex",
            "replace",
        ),
        *("repr", "set_name", "setattr", "setstate", "str"),
    ]
)
_MISSING: Final = object()


def is_library(module: object) -> bool:
    """Return True for a module of the libraries whose code may be traced once."""
    return str(module).partition(".")[0] in LIBRARIES


def checked(value: Any) -> Any:
    """Return a value that traced code computes with, tests, or loops over.

    Raises:
        Unstaged: Its class has such methods in Python code.
    """
    name = _own_method(_class_of(value))
    if name is not None:
        raise Unstaged(
            f"it uses {type(value).__name__}.{name}, which Python must call in each iteration"
        )
    return value


def entered(value: Any) -> Any:
    """Return a value of a `with` statement in traced code.

    Raises:
        Unstaged: It does something at the start and the end of the block.
    """
    maker = getattr(value, "func", value)  # of a context manager that is made from a generator
    owner: Any = maker if isinstance(maker, FunctionType) else _class_of(value)
    if not is_library(owner.__module__):
        raise Unstaged(f"it enters {_name(owner)}, which Python must do in each iteration")
    return value


def following(iterator: Any, *default: Any) -> Any:
    """Return what `next` returns for the iterator of a loop.

    Raises:
        Unstaged: It is another iterator.
    """
    if not isinstance(iterator, Iterator):
        raise Unstaged(f"it takes the next of {_name(_class_of(iterator))} in each iteration")
    return next(iterator, *default)


def refuse_iterators(values: Iterable[object]) -> None:
    """Raise Unstaged if one of the values that traced code has from outside is an iterator of Python."""
    for value in values:
        if isinstance(value, PythonIterator) and not isinstance(value, Iterator):
            raise Unstaged(
                f"it reads {_name(_class_of(value))}, which has other values in each iteration"
            )


def property_of(owner: Any, name: str) -> FunctionType | None:
    """Return the user's function that reads an attribute, or None if no Python code of the user does.

    Raises:
        Unstaged: Other Python code reads it.
    """
    kind = _class_of(owner)
    member: Any = getattr_static(kind, name, _MISSING)
    if isinstance(member, property):
        found = member.fget
        return found if isinstance(found, FunctionType) and _is_own(found) else None
    held = getattr(owner, "__dict__", {})
    if isinstance(member, cached_property):
        known = name in held
        function: Any = member.func
    else:
        known = member is not _MISSING or name in held
        function = getattr_static(kind, "__getattr__", None)
    if not known and isinstance(function, FunctionType) and _is_own(function):
        raise Unstaged(f"it reads {kind.__name__}.{name}, which Python must compute")
    return None


@lru_cache(maxsize=1024)
def _own_method(kind: type) -> str | None:
    """Return a special method that a class of the user has in Python code."""
    for each in kind.__mro__:
        for name, member in vars(each).items():
            is_special = name.startswith("__") and name.endswith("__") and name not in _PASSIVE
            if is_special and isinstance(member, FunctionType) and _is_own(member):
                return name
    return None


def _is_own(function: FunctionType) -> bool:
    """Return True for code that the user wrote: neither that of a library, nor that of a generated method."""
    module = str(function.__module__)
    is_generated = function.__code__.co_filename.startswith("<")
    is_standard = module.partition(".")[0] in sys.stdlib_module_names and module != "__main__"
    return not (is_library(module) or is_standard or is_generated)


def _class_of(value: Any) -> type:
    return type(value)  # pyright: ignore[reportUnknownVariableType]


def _name(kind: Any) -> str:
    return str(getattr(kind, "__qualname__", kind))
