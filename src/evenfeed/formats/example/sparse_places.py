"""Parses `tf.io.SparseFeature`: the values of a feature, and other features that say where they are."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from evenfeed.core.conversion import Array
from evenfeed.core.sparse.sparse_tensors import SparseTensor
from evenfeed.formats.example.example_protos import Where, varying_value
from evenfeed.formats.example.features import Placed


def placed_column(features: Sequence[Any], wanted: Placed) -> SparseTensor:
    """Return a sparse feature of all records, given their Features messages."""
    rows = [_row(one.feature, Where(row), wanted) for row, one in enumerate(features)]
    owners = np.repeat(np.arange(len(rows)), [len(values) for _, values in rows])
    places = np.concatenate([np.zeros((0, len(wanted.size)), np.int64), *(at for at, _ in rows)])
    values = np.concatenate([np.empty(0, wanted.values.dtype), *(values for _, values in rows)])
    shape = np.array([len(rows), *wanted.size], np.int64)
    return SparseTensor(np.concatenate([owners[:, None], places], axis=1), values, shape)


def _row(feature: Any, where: Where, wanted: Placed) -> tuple[Array, Array]:
    """Return the places of one record, as a row for each value, and the values."""
    values = varying_value(feature.get(wanted.values.key), where, wanted.values)
    axes = [varying_value(feature.get(axis.key), where, axis) for axis in wanted.places]
    for axis, held in zip(wanted.places, axes, strict=True):
        if len(held) != len(values):
            raise where.wrong(
                f"Feature {axis.key!r} of {where} has {len(held)} places for the {len(values)} values of "
                f"{wanted.values.key!r}.",
                fix="write as many places as values.",
            )
    places = np.stack(axes, axis=1)
    if wanted.already_sorted:
        return places, values
    order = np.lexsort(axes[::-1])
    return places[order], values[order]
