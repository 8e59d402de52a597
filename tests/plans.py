"""Random plans, and what they mean in plain Python."""

from collections import namedtuple
from collections.abc import Iterator
from itertools import islice
from typing import Any

import numpy as np
from hypothesis import strategies as st

from evenfeed.core import dtypes
from evenfeed.core.structure import DATA, flatten, pack
from evenfeed.dataset import Dataset, plan_of
from evenfeed.plan.grouping import Batch
from evenfeed.plan.node import Node
from evenfeed.plan.ordering import Repeat
from evenfeed.plan.sources import Range, Tensor, TensorSlice

Pair = namedtuple("Pair", "y x")


def columns(rows: int) -> list[Any]:
    """Return values of one length and many kinds."""
    return [
        np.arange(rows * 2).reshape(rows, 2),
        np.linspace(0, 1, rows, dtype=np.float32),
        np.array([f"text {row}" for row in range(rows)], object),
        (np.arange(rows) % 2).astype(bool),
        np.arange(rows, dtype=dtypes.bfloat16),
        np.zeros((rows, 0)),
        None,
    ]


@st.composite
def elements(draw: st.DrawFn) -> Any:
    """Return a structure of columns with one first dimension."""
    some = columns(draw(st.integers(0, 5)))
    first = some[draw(st.integers(0, len(some) - 2))]
    second = draw(st.sampled_from(some))
    shape = draw(st.integers(0, 3))
    return [first, (first, second), {"b": first, "a": second}, (Pair(first, second), {"c": first})][
        shape
    ]


def _sources() -> st.SearchStrategy[Node]:
    numbers = st.integers(-4, 4)
    steps = numbers.filter(bool)
    kinds = st.sampled_from([dtypes.int64, dtypes.uint8, dtypes.float32])
    return st.one_of(
        st.builds(Range, numbers, numbers, steps, dtype=kinds),
        elements().map(lambda value: plan_of(Dataset.from_tensors(value))),
        elements().map(lambda value: plan_of(Dataset.from_tensor_slices(value))),
    )


def _steps(child: st.SearchStrategy[Node]) -> st.SearchStrategy[Node]:
    return st.one_of(
        st.builds(Repeat, child, st.integers(-1, 3)),
        st.builds(Batch, child, st.integers(1, 4), drop_remainder=st.booleans()),
    )


plans = st.recursive(_sources(), _steps, max_leaves=4)


def meaning(node: Node) -> Iterator[list[Any]]:
    """Yield the parts of each element of `node`, one element at a time, without any Block."""
    match node:
        case Range():
            for number in range(node.start, node.stop, node.step):
                yield [np.int64(number).astype(node.dtype)]
        case Tensor():
            yield list(node.arrays)
        case TensorSlice():
            for row in range(node.size):
                yield [None if a is None else a[row, ...] for a in node.arrays]
        case Repeat():
            yield from _played(node)
        case Batch():
            yield from _batches(node)


def _played(node: Repeat) -> Iterator[list[Any]]:
    played = 0
    while played != node.count and node.size != 0:
        yield from meaning(node.child)
        played += 1


def _batches(node: Batch) -> Iterator[list[Any]]:
    rows = meaning(node.child)
    while group := list(islice(rows, node.batch_size)):
        if len(group) == node.batch_size or not node.drop_remainder:
            parts = zip(*group, strict=True)
            yield [None if part[0] is None else np.stack(part) for part in parts]


def outcome(found: Iterator[Any], many: int) -> tuple[list[Any], bool]:
    """Return the first elements, and whether an error ended them: batches of two shapes are one."""
    before: list[Any] = []
    try:
        for element in islice(found, many):
            before.append(element)  # noqa: PERF402 - what came before the error counts
    except ValueError:
        return before, True
    return before, False


def packed(node: Node, parts: list[Any]) -> Any:
    return pack(node.element_spec, parts, DATA)


def assert_equal(one: Any, two: Any) -> None:
    """Raise unless two elements have one structure and equal parts of equal shape and dtype."""
    first, second = flatten(one, DATA), flatten(two, DATA)
    assert type(one) is type(two) or not isinstance(one, (tuple, dict))
    assert len(first) == len(second)
    for mine, theirs in zip(first, second, strict=True):
        assert (mine is None) == (theirs is None)
        if mine is not None:
            np.testing.assert_array_equal(np.asarray(mine), np.asarray(theirs), strict=True)
