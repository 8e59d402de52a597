"""Kernels that parse a whole column of sequence examples: their contexts, and their feature lists."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.ragged.ragged_specs import RaggedTensorSpec
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.core.sparse.sparse_specs import SparseTensorSpec
from evenfeed.core.sparse.sparse_tensors import SparseTensor
from evenfeed.core.specs import TensorSpec
from evenfeed.core.text.text_columns import Texts
from evenfeed.formats.example.example_columns import ExamplesKernel
from evenfeed.formats.example.example_lists import Plain
from evenfeed.formats.example.features import Ragged, Sequenced, Varying
from evenfeed.formats.example.sequence_steps import (
    StepLists,
    batch_of_steps,
    contexts_of,
    steps_of_lists,
)


@final
@dataclass(frozen=True)
class Contexts:
    """What `ContextsKernel` is asked for."""


@final
class ContextsKernel(ExamplesKernel[Contexts]):
    """Cuts off the contexts, as serialized examples."""

    stays_on_host: ClassVar[bool] = True

    def spec(self, feature: Contexts, rows: Sequence[int | None]) -> TensorSpec:  # noqa: ARG002 - a contract
        return TensorSpec(rows, dtypes.string)

    def columns(self, records: Texts, wanted: Sequence[Contexts], shape: Any) -> list[Any]:  # noqa: ARG002 - a contract
        return [contexts_of(records).reshape(*shape)]


@final
@dataclass(frozen=True)
class Count:
    """A request for the number of steps of a feature list."""

    of: Sequenced


@final
class StepsKernel(ExamplesKernel[Plain | Count]):
    """Parses feature lists."""

    stays_on_host: ClassVar[bool] = True

    def spec(self, feature: Plain | Count, rows: Sequence[int | None]) -> Any:
        if isinstance(feature, Count):
            return TensorSpec(rows, dtypes.int64)
        if isinstance(feature, Varying):
            return SparseTensorSpec([*rows, None, None], feature.dtype)
        if isinstance(feature, Sequenced):
            return TensorSpec([*rows, None, *feature.shape], feature.dtype)
        shape = [*rows, None, None]
        return RaggedTensorSpec(shape, feature.values.dtype, len(shape) - 1, feature.splits_dtype)

    def columns(self, records: Texts, wanted: Sequence[Plain | Count], shape: Any) -> list[Any]:
        lists = list(dict.fromkeys(_list_of(one) for one in wanted))
        found = dict(zip(lists, steps_of_lists(records, lists), strict=True))
        return [
            found[one.of].counts.reshape(shape)
            if isinstance(one, Count)
            else _column(found[one], one, shape)
            for one in wanted
        ]


def _list_of(wanted: Plain | Count) -> Plain:
    return wanted.of if isinstance(wanted, Count) else wanted


def _column(held: StepLists, wanted: Plain, shape: Sequence[int]) -> Any:
    if len(shape) == 1:
        if isinstance(wanted, Ragged):
            return held.ragged(wanted)
        if isinstance(wanted, Varying):
            return [_only(one.sparse()) for one in held.parts(1)]
        arrays = held.arrays(wanted)
        return RaggedTensor(arrays.values, arrays.splits)
    elements, each = shape
    if isinstance(wanted, Ragged):
        count = None if each else elements
        rows = RaggedTensor.from_uniform_row_length(held.ragged(wanted), each, nrows=count)
        return rows.with_row_splits_dtype(wanted.splits_dtype)
    if not each:
        return [batch_of_steps(held, wanted) for _ in range(elements)]
    return [batch_of_steps(one, wanted) for one in held.parts(each)]


def _only(rows: SparseTensor) -> SparseTensor:
    shape = np.asarray(rows.dense_shape)[1:]
    return SparseTensor(np.asarray(rows.indices)[:, 1:], rows.values, shape)
