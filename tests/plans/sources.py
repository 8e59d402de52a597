"""Random plans without a child: where elements come from."""

from collections import namedtuple
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from hypothesis import strategies as st
from tests.plans.files import FILES
from tests.plans.meaning import Plans

from evenfeed.core import dtypes
from evenfeed.core.specs import TensorSpec, TypeSpec
from evenfeed.core.structure import DATA, map_structure
from evenfeed.dataset import Dataset, plan_of
from evenfeed.plan.choosing import Counter, Random
from evenfeed.plan.files import Files
from evenfeed.plan.grouping import Batch
from evenfeed.plan.node import Node
from evenfeed.plan.sources import FromGenerator, Range, Tensor, TensorSlice
from evenfeed.plan.windows import Held

Pair = namedtuple("Pair", "y x")


def columns(rows: int) -> list[Any]:
    """Return values of one length and many kinds."""
    return [
        np.arange(rows * 2).reshape(rows, 2),
        np.linspace(0, 1, rows, dtype=np.float32),
        np.array([f"text {row}".encode() for row in range(rows)], object),
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


def _held(value: Any) -> Held:
    """Return the rows of arrays as a window holds them, with no more known of them than their rank."""
    rows = plan_of(Dataset.from_tensor_slices(value))
    assert isinstance(rows, TensorSlice)
    spec = map_structure(_of_rank, rows.element_spec, rules=DATA)
    return Held(spec, tuple(rows.arrays), rows.size)


def _of_rank(spec: TypeSpec) -> TypeSpec:
    return (
        TensorSpec([None] * len(spec.shape), spec.dtype) if isinstance(spec, TensorSpec) else spec
    )


@dataclass(frozen=True)
class Yields:
    """A generator that a user could give: of numbers or lists, with some that are wrong.

    `way` says what it is: a list, a generator, which has ended when it raises, or an iterator, which
    goes on behind what it raised.
    """

    items: tuple[Any, ...]
    way: str

    def __call__(self) -> Any:
        match self.way:
            case "list":
                return list(self.items)
            case "generator":
                return self._one_by_one()
            case _:
                return map(_given, self.items)

    def _one_by_one(self) -> Iterator[Any]:
        for item in self.items:
            yield _given(item)


def _given(item: Any) -> Any:
    if item == "raises":
        raise ValueError("a generator fails")
    return item


WRONG: Final = ("unfit", "raises")


def _generators(item: st.SearchStrategy[Any], spec: TensorSpec) -> Plans:
    items = st.lists(st.one_of(item, item, item, item, st.sampled_from(WRONG)), max_size=8)
    ways = st.sampled_from(["list", "generator", "iterator"])
    made = st.builds(lambda some, way: Yields(tuple(some), way), items, ways)
    return st.builds(FromGenerator, made, st.just(spec))


_numbers: Final = st.integers(-4, 6)

SOURCES: Final[dict[type[Node], Plans]] = {
    Range: st.builds(
        Range,
        _numbers,
        _numbers,
        st.sampled_from([1, 1, 2, -1, -3]),
        dtype=st.sampled_from([dtypes.int64, dtypes.uint8, dtypes.float32]),
    ),
    Tensor: elements().map(lambda value: plan_of(Dataset.from_tensors(value))),
    TensorSlice: elements().map(lambda value: plan_of(Dataset.from_tensor_slices(value))),
    Held: elements().map(_held),
    Counter: st.builds(
        Counter,
        _numbers,
        st.integers(-2, 3),
        dtype=st.sampled_from([dtypes.int64, dtypes.uint8, dtypes.float32]),
    ),
    Random: st.builds(Random, st.tuples(st.integers(0, 9)), reshuffle=st.booleans()),
    FromGenerator: st.one_of(
        _generators(_numbers, TensorSpec([], dtypes.int64)),
        _generators(st.lists(_numbers, max_size=3), TensorSpec([None], dtypes.int32)),
    ),
    Files: FILES,
}

# Batches that do not fit into a batch: what an error in the middle does is part of every law.
_uneven: Final = st.builds(
    lambda stop, inner, outer: Batch(Batch(Range(0, stop), inner), outer),
    st.integers(3, 15),
    st.integers(2, 3),
    st.integers(2, 3),
)
numbers_up: Final = st.builds(Range, st.just(0), st.integers(5, 12))
beginnings: Final = st.one_of([*SOURCES.values(), _uneven, numbers_up, numbers_up])
