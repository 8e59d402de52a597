"""Takes single parts of results as they are, if they are numbers, text or arrays of the right dtype."""

# NumPy is only partly typed.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, TypeAlias, cast

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.block import Column, stacked
from evenfeed.core.dtypes import DType
from evenfeed.core.promotion import PromotingTensor
from evenfeed.core.specs import TensorSpec, TypeSpec
from evenfeed.core.tensor_types import HostTensor, HostText, TextTensor

# Returns a part of a result: bytes, a NumPy scalar or an array; UNREADY if it may need a conversion.
Taker: TypeAlias = Callable[[Any], Any]
UNREADY: Final = object()

# Arrays of these dtypes are tensors without a conversion.
NATIVE: Final = frozenset(map(np.dtype, "?bBhHiIlLefd"))
# The dtypes of plain Python numbers, if they are small; `to_component` knows the rules for all values.
PLAIN: Final[dict[type, DType]] = {
    bool: dtypes.bool,
    int: dtypes.int32,
    float: dtypes.float32,
}
SMALL: Final = 2**31

_ARRAYS: Final[frozenset[type]] = frozenset({np.ndarray, HostTensor, PromotingTensor})
_TEXT_ARRAYS: Final[frozenset[type]] = frozenset({np.ndarray, TextTensor})
# Without the Python code of tensors.
_shape_of: Final[Any] = vars(np.ndarray)["shape"].__get__
_item_of: Final[Any] = np.ndarray.__getitem__


def scalar_taker(spec: TypeSpec, *, casts: bool) -> Taker | None:
    """Return what takes a number or text; None if the spec is that of something else."""
    if not isinstance(spec, TensorSpec) or spec.shape.rank not in (0, None):
        return None
    if spec.dtype == dtypes.string:
        return text_taken
    return _number_taker(spec.dtype, casts=casts) if spec.dtype in NATIVE else None


def scalar_type(spec: Any) -> type | None:
    """Return the NumPy type of single numbers, and bytes for text; None if the spec is that of something else."""
    if not isinstance(spec, TensorSpec) or spec.shape.rank != 0:
        return None
    if spec.dtype == dtypes.string:
        return bytes
    return spec.dtype.type if spec.dtype in NATIVE else None


def array_type(spec: Any) -> tuple[DType, int, tuple[int, ...] | None] | None:
    """Return the dtype, the rank and the shape of arrays; no shape if all lengths are open.

    None if the spec is that of something else, or leaves only some lengths open.
    """
    if not isinstance(spec, TensorSpec) or spec.dtype not in NATIVE or not spec.shape.rank:
        return None
    shape = tuple(spec.shape.as_list())
    if None not in shape:
        return spec.dtype, len(shape), cast("tuple[int, ...]", shape)
    return (spec.dtype, len(shape), None) if set(shape) == {None} else None


def array_taker(spec: TypeSpec, *, casts: bool) -> Taker | None:
    """Return what takes an array of numbers; None if the spec is not that of such arrays."""
    if not isinstance(spec, TensorSpec) or spec.dtype not in NATIVE or spec.shape.rank == 0:
        return None
    shape = None if spec.shape.rank is None else tuple(spec.shape.as_list())
    is_vector = shape is not None and len(shape) == 1
    python = python_type(spec.dtype, casts=casts) if is_vector else None
    number = _number_taker(spec.dtype, casts=casts) if shape is None else None
    dtype, any_of_rank = spec.dtype, -1
    if shape is not None and set(shape) == {None}:
        any_of_rank = len(shape)

    def take(leaf: Any) -> Any:
        kind = type(leaf)
        if kind in _ARRAYS:
            if leaf.dtype != dtype:
                return UNREADY
            own = _shape_of(leaf)
            if own == shape or len(own) == any_of_rank or (own and fits(own, shape)):
                return leaf if kind is np.ndarray else leaf.view(np.ndarray)
        elif kind is list and python is not None:
            return _vector(leaf, python, dtype, shape)
        return UNREADY if number is None else number(leaf)

    return take


def fits(own: tuple[int, ...], shape: tuple[int | None, ...] | None) -> bool:
    """Return True if an array of a shape fits into that of a spec, which may leave lengths, or the rank, open."""
    if shape is None:
        return True
    if len(own) != len(shape):
        return False
    return all(length in (None, found) for length, found in zip(shape, own, strict=True))


def joined_by(spec: TypeSpec, *, casts: bool) -> Callable[[Sequence[Any]], Column] | None:
    """Return what builds a column of a number or text from parts, as `kept_as_they_are` lets them be; else None."""
    scalar = scalar_type(spec)
    if scalar is None:
        return None
    python = str if scalar is bytes else python_type(np.dtype(scalar), casts=casts)
    return stacked if python is None else partial(_joined, scalar, python)


def _joined(scalar: type[Any], python: type[Any], parts: Sequence[Any]) -> Column:
    kinds = set(map(type, parts))
    if python not in kinds:
        return stacked(parts)
    if (
        kinds <= {scalar, python} and python is not str
    ):  # all at once: to make a NumPy scalar takes 100 ns
        return np.fromiter(parts, scalar, len(parts))
    made = str.encode if python is str else scalar
    return stacked([made(part) if type(part) is python else part for part in parts])


def kept_as_they_are(
    kinds: Sequence[type], specs: Sequence[TypeSpec], *, casts: bool
) -> tuple[list[int], list[int]] | None:
    """Return which parts must be small, and which ASCII, to be joined as they are; None if parts of these types cannot be.

    Args:
        kinds: The types of the parts of a result.
        specs: Their specs.
        casts: Whether results are cast to them.
    """
    small, texts = list[int](), list[int]()
    for index, (kind, spec) in enumerate(zip(kinds, specs, strict=True)):
        scalar = scalar_type(spec)
        if scalar is None:
            return None
        if kind is scalar:
            continue
        if scalar is bytes and kind is str:
            texts.append(index)
        elif scalar is not bytes and kind is python_type(np.dtype(scalar), casts=casts):
            small.append(index)
        else:
            return None
    return small, texts


def _number_taker(dtype: DType, *, casts: bool) -> Taker:
    scalar, python = dtype.type, python_type(dtype, casts=casts)

    def take(leaf: Any) -> Any:
        kind = type(leaf)
        if kind is scalar:
            return leaf
        if kind is python:
            return scalar(leaf) if -SMALL <= leaf < SMALL else UNREADY
        if kind in _ARRAYS and leaf.dtype == dtype and not leaf.ndim:
            return _item_of(leaf, ())
        return UNREADY

    return take


def _vector(values: list[Any], python: type, dtype: DType, shape: Any) -> Any:
    """Return a list of small Python numbers of one type as a vector."""
    if list(map(type, values)).count(python) != len(values) or not values:
        return UNREADY
    if not (min(values) >= -SMALL and max(values) < SMALL):  # also if one is not a number
        return UNREADY
    found = np.array(values, dtype)
    return found if fits(found.shape, shape) and np.isfinite(found).all() else UNREADY


def text_taken(leaf: Any) -> Any:
    """Return text as bytes; UNREADY if the leaf is something else."""
    kind = type(leaf)
    if kind is bytes:
        return leaf
    if kind is HostText:
        return bytes(leaf)
    if kind is str:
        try:
            return leaf.encode()
        except (
            UnicodeEncodeError
        ):  # half of a surrogate pair; `encoded` raises an error that says so
            return UNREADY
    if kind in _TEXT_ARRAYS and leaf.dtype == dtypes.string and not leaf.ndim:
        text = leaf.item()
        return text if type(text) is bytes else UNREADY
    return UNREADY


def python_type(dtype: DType, *, casts: bool) -> type | None:
    """Return the Python type whose small numbers get this dtype without another in between."""
    if casts and dtype == dtypes.int64:
        return int  # int32 first, which keeps every small number
    return next((kind for kind, default in PLAIN.items() if default == dtype), None)
