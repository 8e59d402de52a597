"""Checks indices that Python knows. JAX would clamp them, and return another row."""

import sys
from collections.abc import Iterable, Sequence
from types import EllipsisType
from typing import Any, cast

import numpy as np

from evenfeed.core.errors import InvalidArgumentError

_INTEGERS: Any = (int, np.integer)


def check_key(key: Any, shape: tuple[int, ...]) -> None:
    """Raise if a key of `x[key]` has an index that is known and out of bounds, or more indices than `x` has axes.

    An array in the key may stand for several axes, so what follows it is counted from the end, behind an ellipsis.
    """
    keys = cast("tuple[Any, ...]", key if isinstance(key, tuple) else (key,))
    _check_each(keys, shape, shape)
    if any(each is Ellipsis for each in keys):
        _check_each(reversed(keys), shape[::-1], shape)
    elif sum(1 for each in keys if _is_plain(each)) > len(shape):
        raise InvalidArgumentError(
            f"{key!r} has too many indices for the shape {tuple(shape)}.",
            fix="pass one index for each axis.",
        )


def _check_each(keys: Iterable[Any], lengths: Sequence[int], shape: tuple[int, ...]) -> None:
    left = iter(lengths)
    for each in keys:
        if each is None:
            continue
        length = next(left, None)
        if length is None or not _is_plain(each):
            return
        index = None if isinstance(each, slice) else int(each)
        if index is not None and not -length <= index < length:
            raise InvalidArgumentError(
                f"The index {index} must be between {-length} and {length - 1} for the shape {tuple(shape)}.",
                fix="count from 0, or from the end with -1.",
            )


def _is_plain(each: Any) -> bool:
    """Return True if a part of a key takes one axis: a known integer or a slice. A bool adds an axis, as in NumPy."""
    if isinstance(each, bool | EllipsisType):
        return False
    return isinstance(each, (slice, *_INTEGERS)) or _is_single_integer(each)


def _is_single_integer(each: Any) -> bool:
    """Return True if a part of a key is an array of one integer, on the host or on devices of this process."""
    if getattr(each, "shape", None) != () or each.dtype.kind not in "iu":
        return False
    return isinstance(each, np.ndarray) or _is_on_devices(each)


def _is_on_devices(each: Any) -> bool:
    jax: Any = sys.modules["jax"]
    return (
        isinstance(each, jax.Array)
        and not isinstance(each, jax.core.Tracer)
        and each.is_fully_addressable
    )
