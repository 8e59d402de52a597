"""Checks of shapes and dtypes, which are known in a trace too: the rest of TensorFlow's `tf.debugging`."""

# ruff: noqa: ARG001 - TensorFlow's arguments; `summarize` and `name` change nothing

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import shortened
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import described
from evenfeed.tensors.axes import known_integer
from evenfeed.tensors.creation import DTypeLike, convert_to_tensor


def assert_integer(x: object, message: str | None = None, name: str | None = None) -> None:
    """Raise TypeError unless the dtype is an integer.

    Examples:
        >>> import evenfeed as tf
        >>> tf.debugging.assert_integer([1])
    """
    dtype = convert_to_tensor(x).dtype
    if dtype.kind not in "iu":
        raise TypeError(_text(f"Expected integers, but got {dtypes.name_of(dtype)}.", message))


def assert_type(
    tensor: object, tf_type: DTypeLike, message: str | None = None, name: str | None = None
) -> None:
    """Raise TypeError unless the tensor has this dtype.

    Examples:
        >>> import evenfeed as tf
        >>> tf.debugging.assert_type(1, tf.int32)
    """
    found, wanted = convert_to_tensor(tensor).dtype, dtypes.as_dtype(tf_type)
    if found != wanted:
        raise TypeError(
            _text(f"Expected {dtypes.name_of(wanted)}, but got {dtypes.name_of(found)}.", message)
        )


def assert_same_float_dtype(
    tensors: Iterable[object] | None = None, dtype: DTypeLike | None = None
) -> DType:
    """Raise ValueError unless all tensors have one float dtype, which is returned.

    Examples:
        >>> import evenfeed as tf
        >>> tf.debugging.assert_same_float_dtype([1.0, 2.0])
        dtype('float32')
    """
    found = {dtypes.as_dtype(convert_to_tensor(one).dtype) for one in tensors or ()}
    found |= set() if dtype is None else {dtypes.as_dtype(dtype)}
    if len(found) > 1 or any(one.kind in "biucO" for one in found):
        raise ValueError(
            described(f"Expected one float dtype, but got {sorted(map(dtypes.name_of, found))}.")
        )
    return found.pop() if found else dtypes.float32


def assert_scalar(tensor: object, message: str | None = None, name: str | None = None) -> None:
    """Raise ValueError unless the tensor is a single value.

    Examples:
        >>> import evenfeed as tf
        >>> tf.debugging.assert_scalar(1)
    """
    assert_rank(tensor, 0, message)


def assert_rank(
    x: object, rank: object, message: str | None = None, name: str | None = None
) -> None:
    """Raise ValueError unless the tensor has this number of axes.

    Examples:
        >>> import evenfeed as tf
        >>> tf.debugging.assert_rank([1, 2], 1)
    """
    assert_rank_in(x, [rank], message)


def assert_rank_at_least(
    x: object, rank: object, message: str | None = None, name: str | None = None
) -> None:
    """Raise ValueError unless the tensor has at least this number of axes.

    Examples:
        >>> import evenfeed as tf
        >>> tf.debugging.assert_rank_at_least([1, 2], 1)
    """
    found, least = convert_to_tensor(x).ndim, known_integer(rank, "rank")
    if found < least:
        raise ValueError(_text(f"Expected a rank of at least {least}, but got {found}.", message))


def assert_rank_in(
    x: object, ranks: Iterable[object], message: str | None = None, name: str | None = None
) -> None:
    """Raise ValueError unless the number of axes is one of these.

    Examples:
        >>> import evenfeed as tf
        >>> tf.debugging.assert_rank_in([1, 2], [1, 2])
    """
    found, known = convert_to_tensor(x).ndim, [known_integer(one, "rank") for one in ranks]
    if found not in known:
        wanted = " or ".join(map(str, known))
        raise ValueError(_text(f"Expected rank {wanted}, but got {found}.", message))


def assert_shapes(
    shapes: Any,
    data: object = None,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> None:
    """Raise ValueError unless tensors have these shapes. Lengths with the same name must be equal.

    Args:
        shapes: Pairs of a tensor and its shape: ints, names, None for any length, or "..." for any axes.
        data: Accepted for compatibility.
        summarize: Accepted for compatibility.
        message: A text for the error.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> tf.debugging.assert_shapes([(tf.zeros([2, 3]), ("N", 3)), (tf.zeros([2]), ("N",))])
    """
    named: dict[str, int] = {}
    pairs: Iterable[Any] = (
        cast("Mapping[Any, Any]", shapes).items() if isinstance(shapes, Mapping) else shapes
    )
    for tensor, wanted in cast("Iterable[tuple[Any, Any]]", pairs):
        found = tuple(convert_to_tensor(tensor).shape)
        if not _fits(found, _symbols(wanted), named):
            raise ValueError(
                _text(f"Expected the shape {tuple(_symbols(wanted))}, but got {found}.", message)
            )


def assert_proper_iterable(values: object) -> None:
    """Raise TypeError unless `values` is a list or the like, and no tensor, text or dict.

    Examples:
        >>> import evenfeed as tf
        >>> tf.debugging.assert_proper_iterable([1, 2])
    """
    is_single = isinstance(values, (np.ndarray, bytes, str, Mapping)) or not isinstance(
        values, Iterable
    )
    if is_single or not isinstance(values, (Sequence, set, frozenset)):
        raise TypeError(described(f"Expected a list, but got {shortened(cast('object', values))}."))


def is_numeric_tensor(tensor: object) -> bool:
    """Return True for a tensor of numbers.

    Examples:
        >>> import evenfeed as tf
        >>> tf.debugging.is_numeric_tensor(tf.constant(1)), tf.debugging.is_numeric_tensor(1)
        (True, False)
    """
    dtype = getattr(tensor, "dtype", None)
    return isinstance(dtype, np.dtype) and dtype.kind not in "bO"


def _text(what: str, message: str | None) -> str:
    return described(f"{message} {what}" if message else what)


def _symbols(wanted: Any) -> list[Any]:
    several = isinstance(wanted, (list, tuple, str))
    return list(cast("Iterable[Any]", wanted)) if several else [wanted]


def _fits(found: tuple[int, ...], wanted: list[Any], named: dict[str, int]) -> bool:
    if wanted and wanted[0] in ("...", "*", Ellipsis):
        wanted = wanted[1:]
        found = found[len(found) - len(wanted) :] if len(found) >= len(wanted) else ()
    elif wanted and wanted[-1] in ("...", "*", Ellipsis):
        wanted = wanted[:-1]
        found = found[: len(wanted)]
    if len(found) != len(wanted):
        return False
    for length, symbol in zip(found, wanted, strict=True):
        if symbol in (None, "."):
            continue
        expected = (
            named.setdefault(symbol, length)
            if isinstance(symbol, str) and not symbol.isdigit()
            else int(symbol)
        )
        if expected != length:
            return False
    return True
