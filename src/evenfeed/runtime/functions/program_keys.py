"""Programs by what they compute, so that functions that do the same are compiled once.

A user makes a dataset again and again with the same function, or the same lambda in a loop. Functions are not compared,
because one may read other values each time. What was traced is: every operation, its settings, and all constants.
"""

from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from enum import Enum
from threading import Lock
from typing import Any, Final, cast, final

import numpy as np

from evenfeed.core.lazy import hashlib

# How many programs to keep after their datasets are gone.
_MOST: Final = 128
# Larger constants would take longer to compare than a program to compile.
_MOST_BYTES: Final = 1 << 24

# Values whose repr says all about them.
_SIMPLE: Final = (bool, int, float, complex, str, bytes, type(None), np.dtype, type, Enum)
# Operations whose other settings do not change their results: how to differentiate, or where to run.
_BODIES: Final = {
    "jit": ("jaxpr",),
    "pjit": ("jaxpr",),
    "custom_jvp_call": ("call_jaxpr",),
    "custom_vjp_call": ("call_jaxpr",),
}


@final
class _Unknown(Exception):  # noqa: N818 - control flow, not an error
    """A setting of an operation cannot be compared."""


@final
class SharedPrograms:
    """The programs used last, by what they compute."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, Callable[..., Any]] = OrderedDict()
        self._lock = Lock()

    def of(self, key: Hashable, compile_it: Callable[[], Callable[..., Any]]) -> Callable[..., Any]:
        """Return the program of a key; compile it if it is new."""
        with self._lock:
            found = self._kept.get(key)
        found = compile_it() if found is None else found
        with self._lock:
            self._kept[key] = found
            self._kept.move_to_end(key)
            if len(self._kept) > _MOST:
                self._kept.popitem(last=False)
        return found


def key_of(closed: Any) -> bytes | None:
    """Return a key of what a closed jaxpr computes; None if it cannot be compared with others."""
    digest = hashlib.blake2b(digest_size=32)
    try:
        for part in _closed(closed):
            digest.update(part)
    except _Unknown:
        return None
    return digest.digest()


def _closed(closed: Any) -> Iterator[bytes]:
    yield b"("
    for constant in closed.consts:
        yield from _array(constant)
    yield from _jaxpr(closed.jaxpr)
    yield b")"


def _jaxpr(jaxpr: Any) -> Iterator[bytes]:
    names: dict[Any, int] = {}
    for var in (*jaxpr.constvars, *jaxpr.invars):
        yield _named(var, names)
    for equation in jaxpr.eqns:
        if equation.effects:
            raise _Unknown
        name = equation.primitive.name
        yield f"\n{name} {id(equation.primitive)}".encode()
        for source in equation.invars:
            yield from _source(source, names)
        given: dict[str, Any] = equation.params
        settings = _BODIES.get(name, sorted(given))
        if not given.keys() >= set(settings):
            raise _Unknown  # another version of JAX
        for setting in settings:
            yield f";{setting}=".encode()
            yield from _setting(given[setting])
        for target in equation.outvars:
            yield _named(target, names)
    for result in jaxpr.outvars:
        yield from _source(result, names)


def _named(var: Any, names: dict[Any, int]) -> bytes:
    names[var] = len(names)
    return f" {names[var]}:{var.aval.str_short()}".encode()


def _source(var: Any, names: dict[Any, int]) -> Iterator[bytes]:
    if getattr(var, "val", None) is None:
        yield f" {names[var]}".encode()
    else:  # a literal in the equation
        yield f" {var.aval.str_short()}".encode()
        yield from _array(var.val)


def _array(value: Any) -> Iterator[bytes]:
    dtype = getattr(value, "dtype", None)
    if dtype is not None and not isinstance(dtype, np.dtype):
        raise _Unknown  # a random key
    array: np.ndarray[Any, Any] = np.asarray(value)
    if array.dtype == np.object_ or array.nbytes > _MOST_BYTES:
        raise _Unknown
    yield f" {array.dtype.name}{array.shape}".encode()
    yield array.tobytes()


def _setting(value: Any) -> Iterator[bytes]:
    if isinstance(value, _SIMPLE):
        plain = cast("object", value)
        yield f"{type(plain).__name__} {plain!r}".encode()
    elif isinstance(value, dict):
        yield from _settings(sorted(cast("dict[str, Any]", value).items()))
    elif isinstance(value, (tuple, list)):
        yield from _settings(cast("Sequence[Any]", value))
    elif isinstance(value, (np.ndarray, np.generic)):
        yield from _array(value)
    elif getattr(value, "consts", None) is not None:
        yield from _closed(value)
    elif getattr(value, "eqns", None) is not None:
        yield from _jaxpr(value)
    else:
        raise _Unknown


def _settings(values: Iterable[Any]) -> Iterator[bytes]:
    yield b"["
    for value in values:
        yield from _setting(value)
        yield b","
    yield b"]"
