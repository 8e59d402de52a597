"""Indexing of ragged tensors, and elementwise operators on them."""

from collections.abc import Callable
from typing import Any, Final, cast

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array, shortened
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.gradients.followed_values import check_not_followed, host_array
from evenfeed.core.promotion import computed_tensor
from evenfeed.core.ragged.building import len_of
from evenfeed.core.ragged.ragged_tensors import RaggedTensor, slice_of
from evenfeed.core.ragged.row_partitions import from_lengths
from evenfeed.core.ragged.wrong_dtypes import WrongDtypeError

# The names of operators, as in the module `operator`.
_OF_ALL: Final = frozenset(["eq", "ne"])
_OF_BOOLS: Final = frozenset(["and_", "or_", "xor", "invert"])


def computed(compute: Callable[[Any, Any], Any], left: Any, right: Any) -> RaggedTensor:
    """Compute elementwise. Ragged operands must have the same rows; others broadcast."""
    rows = left if isinstance(left, RaggedTensor) else right
    assert isinstance(rows, RaggedTensor)
    check_not_followed(left, right, function="Arithmetic with a RaggedTensor")
    for operand in (left, right):
        if isinstance(operand, RaggedTensor):
            check_dtype(compute, operand)
    one, two = values_for(rows, left), values_for(rows, right)
    return rows.with_flat_values(compute(one, two))


def check_dtype(compute: Callable[..., Any], rows: RaggedTensor) -> None:
    """Raise if an operator does not take these rows: logic needs bools, and arithmetic does not take them."""
    if compute.__name__ in _OF_ALL:
        return
    needs_bools = compute.__name__ in _OF_BOOLS
    if needs_bools != (rows.dtype == dtypes.bool):
        raise WrongDtypeError(
            f"The operator {compute.__name__.strip('_')} needs {'bools' if needs_bools else 'numbers'}, but got a RaggedTensor of {dtypes.name_of(rows.dtype)}.",
            fix=f"convert the values first: evenfeed.cast(x, evenfeed.{'bool' if needs_bools else 'int32'}).",
        )


def values_for(rows: RaggedTensor, operand: Any) -> Any:
    """Return the values of an operand, one for each value of the rows."""
    if isinstance(operand, RaggedTensor):
        pairs = zip(rows.nested_row_splits, operand.nested_row_splits, strict=False)
        same = rows.ragged_rank == operand.ragged_rank
        if not same or not all(np.array_equal(a, b) for a, b in pairs):
            raise InvalidArgumentError(
                "The operands have rows of different lengths.",
                fix="pass ragged tensors with the same row lengths.",
            )
        return operand.flat_values
    if isinstance(operand, (bool, int, float, complex, str, bytes)):
        return operand
    array = computed_tensor(host_array(operand))
    return array if array.ndim < rows.flat_values.ndim else _broadcast(rows, array)


def _broadcast(rows: RaggedTensor, array: Any) -> Any:
    """Repeat a dense operand along the ragged axes, where its length is 1."""
    rank = len(rows.shape)
    if array.ndim > rank:
        raise _not_broadcast(rows, array)
    aligned = array.reshape(*(1,) * (rank - array.ndim), *array.shape)
    level: Any = rows
    while isinstance(level, RaggedTensor):
        count, inner = len_of(level), level.row_lengths()
        if len(aligned) not in (1, count) or aligned.shape[1] != 1:
            raise _not_broadcast(rows, array)
        whole = aligned[:, 0] if len(aligned) == count else np.repeat(aligned[:, 0], count, axis=0)
        aligned = np.repeat(whole, np.asarray(inner), axis=0)
        level = level.values
    return aligned


def _not_broadcast(rows: RaggedTensor, array: Any) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"A tensor of shape {tuple(array.shape)} does not broadcast to ragged rows of shape {rows.shape}.",
        fix="pass a scalar, one value per row with shape [rows, 1], or a ragged tensor.",
    )


def indexed(rows: RaggedTensor, key: Any) -> Any:
    """Return `rows[key]`, as TensorFlow indexes ragged tensors."""
    keys = list(cast("tuple[Any, ...]", key)) if isinstance(key, tuple) else [key]
    if Ellipsis in [k for k in keys if k is None or k is Ellipsis]:
        at = next(place for place, one in enumerate(keys) if one is Ellipsis)
        used = sum(one is not None for one in keys) - 1
        keys[at : at + 1] = [slice(None)] * (len(rows.shape) - used)
    return _at(rows, [_known_key(one) for one in keys])


def _known_key(key: Any) -> Any:
    """Return an index as an int, and a slice with ints."""
    if key is None:
        return None
    if isinstance(key, slice):
        bounds = cast("Any", key)
        return slice(*map(_known_key, (bounds.start, bounds.stop, bounds.step)))
    if isinstance(key, bool):
        raise ValueError(described(f"A bool is no index: {key}.", fix="pass an int or a slice."))
    array = host_array(key)
    if array.ndim or array.dtype.kind not in "iu":
        raise TypeError(
            described(
                f"An index must be an integer, but got {shortened(key)}.",
                fix="pass an int or a slice; evenfeed.gather picks several rows.",
            )
        )
    return int(array)


def _at(rows: Any, keys: list[Any]) -> Any:
    if not keys:
        return rows
    if not isinstance(rows, RaggedTensor):
        return rows[tuple(keys)]
    first, rest = keys[0], keys[1:]
    if first is None:
        return RaggedTensor.from_uniform_row_length(_at(rows, rest), len_of(rows), nrows=1)
    if isinstance(first, slice):
        return _inside(_sliced(rows, cast("Any", first)), rest)
    index, count = first, len_of(rows)
    if not -count <= index < count:
        raise IndexError(
            described(
                f"Row key {index} out of bounds for {count} rows.",
                fix=f"pass a row from {-count} to {count - 1}."
                if count
                else "the tensor is empty.",
            )
        )
    return _at(rows.row(index % count), rest)


def _sliced(rows: RaggedTensor, key: Any) -> RaggedTensor:
    known: tuple[int, int, int] = key.indices(len_of(rows))
    if known[2] == 1:
        return slice_of(rows, known[0], max(known[0], known[1]))
    return rows.rows(np.arange(*known))


def _inside(rows: RaggedTensor, keys: list[Any]) -> Any:
    """Index inside of each row."""
    if not keys:
        return rows
    first, rest = keys[0], keys[1:]
    if first is None:
        inner = RaggedTensor(rows.values, np.asarray(rows.row_splits))
        return RaggedTensor.from_uniform_row_length(_inside(inner, rest), 1, nrows=len_of(rows))
    if isinstance(first, slice):
        cut = rows if first == slice(None) else _cut_rows(rows, cast("Any", first))
        return cut.with_values(_at(cut.values, [slice(None), *rest])) if rest else cut
    if rows.uniform_row_length is None:
        raise ValueError(
            described(
                "Cannot index into an inner ragged dimension: a row may be too short.",
                fix="slice it, as in x[:, :1], or convert it with x.to_tensor().",
            )
        )
    length, index = int(rows.uniform_row_length), first
    if not -length <= index < length:
        raise IndexError(described(f"Index {index} is out of bounds for rows of length {length}."))
    positions = np.arange(len_of(rows)) * length + index % length
    return _at(_rows_of(rows.values, positions), [slice(None), *rest])


def _rows_of(values: Any, positions: Array) -> Any:
    return values.rows(positions) if isinstance(values, RaggedTensor) else values[positions]


def _cut_rows(rows: RaggedTensor, key: Any) -> RaggedTensor:
    """Slice each row. Like Python, a slice stops at the end of a short row."""
    splits = np.asarray(rows.row_splits)
    lengths = np.diff(splits)
    pairs = {length: key.indices(length) for length in np.unique(lengths).tolist()}
    bounds = np.array([pairs[length] for length in lengths.tolist()], np.int64).reshape(-1, 3)
    counts = np.array([len(range(*pairs[length])) for length in lengths.tolist()], splits.dtype)
    new = from_lengths(counts, 0, check=False)
    within = np.arange(int(new[-1])) - np.repeat(new[:-1], counts)
    firsts = np.repeat(splits[:-1] + bounds[:, 0], counts)
    positions = firsts + within * np.repeat(bounds[:, 2], counts)
    length = rows.uniform_row_length
    uniform = None if length is None else len(range(*key.indices(int(length))))
    return RaggedTensor(_rows_of(rows.values, positions), new, uniform)
