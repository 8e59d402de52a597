"""Converts Arrow types to specs, and Arrow arrays to columns.

Numbers and bools keep their dtype. Text and binary become bytes, fixed-size lists become tensors, lists become
tensors whose first dimension varies by row, and structs become dicts. Dictionaries are decoded. Times and dates
become integers in the unit of the file.
"""

import importlib
import re
from collections.abc import Callable
from functools import cache
from typing import Any, Final, TypeAlias, cast

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.block import Column
from evenfeed.core.conversion import Array
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import InvalidArgumentError, UnimplementedError
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.core.specs import TensorSpec

# Marks rows, by number, as bad, with the reason.
Blame: TypeAlias = Callable[[Array, str], None]

_NUMBERS: Final = re.compile("bool|u?int(8|16|32|64)|halffloat|float|double")
_NAMES: Final = {"halffloat": "float16", "float": "float32", "double": "float64"}


@cache
def arrow(part: str = "") -> Any:
    """Import pyarrow, or one of its modules."""
    try:
        return importlib.import_module(f"pyarrow.{part}" if part else "pyarrow")
    except ImportError as error:
        raise UnimplementedError(
            f"Reading Arrow and Parquet files needs pyarrow, which cannot be imported: {error}.",
            fix="pip install 'evenfeed[parquet]'.",
        ) from error


def spec_of(kind: Any, name: str) -> Any:
    """Return the spec of a column of this Arrow type: a TensorSpec, or a dict of specs."""
    types = arrow("types")
    kind = _plain_type(kind)
    if types.is_struct(kind):
        return {part.name: spec_of(part.type, f"{name}.{part.name}") for part in kind}
    if types.is_fixed_size_list(kind):
        return _in_front(kind.list_size, spec_of(kind.value_type, name), kind, name)
    if types.is_list(kind) or types.is_large_list(kind):
        return _in_front(None, spec_of(kind.value_type, name), kind, name)
    dtype = _dtype(kind)
    if dtype is None:
        raise _refused(kind, name)
    return TensorSpec([], dtype)


def _in_front(size: int | None, inner: Any, kind: Any, name: str) -> TensorSpec:
    # Rejects lists of dicts, lists of variable-length lists, and the negative length of a damaged file.
    if not isinstance(inner, TensorSpec) or None in inner.shape or (size or 0) < 0:
        raise _refused(kind, name)
    return TensorSpec([size, *inner.shape], inner.dtype)


def _refused(kind: Any, name: str) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"Column {name!r} has type {kind}, which no tensor can hold.",
        fix="leave it out with columns=[...], or cast it when writing the file.",
    )


def _plain_type(kind: Any) -> Any:
    """Return the type that a dictionary or extension type represents."""
    types, pyarrow = arrow("types"), arrow()
    if types.is_dictionary(kind):
        return _plain_type(kind.value_type)
    if isinstance(kind, pyarrow.FixedShapeTensorType) and _is_in_order(kind.permutation):
        value = kind.value_type
        for size in reversed(kind.shape):
            value = pyarrow.list_(value, size)
        return value
    return kind


def _is_in_order(permutation: list[int] | None) -> bool:
    return permutation is None or permutation == sorted(permutation)


def _dtype(kind: Any) -> DType | None:
    types = arrow("types")
    if _NUMBERS.fullmatch(str(kind)):
        return dtypes.as_dtype(_NAMES.get(str(kind), str(kind)))
    if types.is_date32(kind) or types.is_time32(kind):
        return dtypes.int32
    if types.is_temporal(kind) and kind.bit_width == 64:
        return dtypes.int64
    return dtypes.string if _is_text(kind) else None


def _is_text(kind: Any) -> bool:
    return kind.id in _text_kinds()


@cache
def _text_kinds() -> frozenset[int]:
    """Return the numbers that pyarrow gives to types of text."""
    pyarrow = arrow()
    texts = (pyarrow.string(), pyarrow.large_string(), pyarrow.string_view())
    binaries = (pyarrow.binary(), pyarrow.large_binary(), pyarrow.binary_view(), pyarrow.binary(1))
    return frozenset(kind.id for kind in (*texts, *binaries))


@cache
def _plain_kinds() -> frozenset[int]:
    """Return the numbers that pyarrow gives to types whose arrays NumPy takes as they are."""
    pyarrow = arrow()
    names = ("bool_", *(f"{sign}int{8 << n}" for sign in ("", "u") for n in range(4)))
    floats = ("float16", "float32", "float64")
    return frozenset(getattr(pyarrow, name)().id for name in (*names, *floats))


def columns_of(array: Any, name: str, fills: dict[str, Any], blame: Blame) -> list[Column]:
    """Return the columns of an array, in the order of its spec. Nulls are filled, or marked with `blame`."""
    array = _in_one_chunk(array)
    if array.type.id in _plain_kinds() and not array.null_count:
        return [array.to_numpy(zero_copy_only=False)]
    types = arrow("types")
    array = _decoded(array)
    if types.is_struct(array.type):
        parts = dict(zip([part.name for part in array.type], array.flatten(), strict=True))
        found = [columns_of(parts[key], f"{name}.{key}", fills, blame) for key in sorted(parts)]
        return [column for columns in found for column in columns]
    if array.null_count:
        array = _without_nulls(array, name, fills, blame)
    return [_column(array, name, blame)]


def _in_one_chunk(array: Any) -> Any:
    if not isinstance(array, arrow().ChunkedArray):
        return array
    return array.chunk(0) if array.num_chunks == 1 else array.combine_chunks()


def _decoded(array: Any) -> Any:
    pyarrow, types = arrow(), arrow("types")
    if types.is_dictionary(array.type):
        return _decoded(_in_one_chunk(array.dictionary_decode()))
    if types.is_temporal(array.type):
        return array.view(pyarrow.int64() if array.type.bit_width == 64 else pyarrow.int32())
    if isinstance(array.type, pyarrow.FixedShapeTensorType):
        return _nested(array.storage, array.type.shape)
    return array


def _nested(array: Any, shape: list[int]) -> Any:
    """Return a flat fixed-size list of tensor values as nested lists."""
    pyarrow, rows = arrow(), len(array)
    values = array.values.slice(array.offset * array.type.list_size, rows * array.type.list_size)
    for size in reversed(shape):
        values = pyarrow.FixedSizeListArray.from_arrays(values, size)
    if not array.null_count:
        return values
    return arrow("compute").if_else(array.is_valid(), values, None)


def _without_nulls(array: Any, name: str, fills: dict[str, Any], blame: Blame) -> Any:
    if name not in fills:
        blame(_places(array.is_null()), f"column {name!r} is null")
    if _is_list(array.type):
        return array  # the values behind a null are never read
    pyarrow = arrow()
    value = fills.get(name, b"" if _is_text(array.type) else 0)
    if arrow("types").is_fixed_size_binary(array.type) and not value:
        value = bytes(array.type.byte_width)
    return arrow("compute").fill_null(array, pyarrow.scalar(value).cast(array.type))


def _is_list(kind: Any) -> bool:
    types = arrow("types")
    return types.is_fixed_size_list(kind) or types.is_list(kind) or types.is_large_list(kind)


def _places(mask: Any) -> Array:
    return np.flatnonzero(mask.to_numpy(zero_copy_only=False))


def _column(array: Any, name: str, blame: Blame) -> Column:
    types = arrow("types")
    if types.is_fixed_size_list(array.type):
        return _tensors(array, name, blame)
    if _is_list(array.type):
        return _ragged(array, name, blame)
    if _is_text(array.type):
        return _bytes(array)
    return array.to_numpy(zero_copy_only=False)


def _bytes(array: Any) -> Array:
    pyarrow = arrow()
    if not arrow("types").is_fixed_size_binary(array.type):
        array = array.cast(pyarrow.large_binary())
    return array.to_numpy(zero_copy_only=False)


def _tensors(array: Any, name: str, blame: Blame) -> Column:
    size, rows = array.type.list_size, len(array)
    values = array.values.slice(array.offset * size, rows * size)
    inner = _values(values, name, lambda places: places // max(1, size), blame)
    return inner.reshape(rows, size, *inner.shape[1:])


def _ragged(array: Any, name: str, blame: Blame) -> Column:
    offsets = array.offsets.to_numpy()
    values = array.values.slice(int(offsets[0]), int(offsets[-1] - offsets[0]))
    stops = offsets - offsets[0]
    inner = _values(values, name, lambda places: np.searchsorted(stops, places, "right") - 1, blame)
    return RaggedTensor(inner, stops.astype(np.int64))


def _values(values: Any, name: str, row: Callable[[Array], Array], blame: Blame) -> Array:
    """Return the values inside lists; a null marks the row that contains it."""

    def blame_row(places: Array, what: str) -> None:
        blame(row(places), what)

    (inner,) = columns_of(values, name, {}, blame_row)
    return cast("Array", inner)  # its spec has no unknown dimension
