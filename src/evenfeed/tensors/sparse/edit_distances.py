"""`edit_distance`: how many changes turn one sequence into another."""

# ruff: noqa: ARG001 - TensorFlow's names; there is no graph to show `name` in

from collections import defaultdict
from typing import Any

import numpy as np

from evenfeed.core.conversion import Array
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.sparse.sparse_tensors import SparseTensor
from evenfeed.tensors.creation import Tensor, convert_to_tensor
from evenfeed.tensors.sparse.sparse_layout import checked, shape_of


def edit_distance(
    hypothesis: Any, truth: Any, normalize: bool = True, name: str = "edit_distance"
) -> Tensor:
    """Return the Levenshtein distance of the sequences along the last axis of two sparse tensors.

    Args:
        hypothesis: Sequences, as a SparseTensor.
        truth: The sequences that they should be.
        normalize: Divide by the length of the truth; an empty one gives infinity, or 0 if both are empty.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> hypothesis, truth = (tf.sparse.from_dense(row) for row in ([[1, 2, 3]], [[1, 3]]))
        >>> tf.edit_distance(hypothesis, truth).tolist()
        [0.5]
    """
    one, two = checked("edit_distance", hypothesis), checked("edit_distance", truth)
    if one.dtype != two.dtype or len(shape_of(one)) != len(shape_of(two)):
        raise InvalidArgumentError(
            f"edit_distance needs tensors of one dtype and rank, but got {one.dtype.name} of rank "
            f"{len(shape_of(one))} and {two.dtype.name} of rank {len(shape_of(two))}.",
            fix="convert one of them with evenfeed.cast.",
        )
    lengths = np.maximum(one.dense_shape, two.dense_shape)[:-1]
    found: Array = np.zeros(lengths, np.float32)
    sequences, wanted = _sequences(one), _sequences(two)
    for place in sequences.keys() | wanted.keys():
        target = wanted[place]
        distance = _distance(sequences[place], target)
        if normalize:
            distance = distance / len(target) if target else np.inf
        found[place] = distance
    return convert_to_tensor(found)


def _sequences(tensor: SparseTensor) -> defaultdict[tuple[int, ...], list[Any]]:
    found: defaultdict[tuple[int, ...], list[Any]] = defaultdict(list)
    places = map(tuple, np.asarray(tensor.indices)[:, :-1].tolist())
    for place, value in zip(places, np.asarray(tensor.values).tolist(), strict=True):
        found[place].append(value)
    return found


def _distance(one: list[Any], two: list[Any]) -> float:
    """Return the least number of values to insert, delete or replace, row by row of the table of prefixes."""
    row = list(range(len(two) + 1))
    for number, value in enumerate(one, 1):
        diagonal, row[0] = row[0], number
        for place, other in enumerate(two, 1):
            changed = diagonal + (value != other)
            diagonal, row[place] = row[place], min(row[place] + 1, row[place - 1] + 1, changed)
    return row[-1]
