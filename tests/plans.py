"""Random plans, and what they mean in plain Python.

A new node needs one line in `STEPS` (how to make a plan with it at the top) and one function marked
`@means` (its elements, one at a time, without any Block). All laws then hold for it, or fail.
"""

import copy
import importlib
import json
import pkgutil
from collections import namedtuple
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, Final
from unittest.mock import patch

import numpy as np
from hypothesis import strategies as st

import evenfeed.plan
from evenfeed.core import dtypes
from evenfeed.core.cardinality import INFINITE, UNKNOWN
from evenfeed.core.draws import Permutation, key_of, numbers_below, words_at
from evenfeed.core.structure import DATA, flatten, pack
from evenfeed.dataset import Dataset, plan_of
from evenfeed.plan.combining import Concatenate, Zip
from evenfeed.plan.elementwise import Enumerate, WithKeys
from evenfeed.plan.grouping import Batch
from evenfeed.plan.node import Node
from evenfeed.plan.ordering import Repeat, Shard, Shuffle, Skip, Take
from evenfeed.plan.sources import Range, Tensor, TensorSlice
from evenfeed.runtime import build
from evenfeed.runtime.elements import ElementIterator
from evenfeed.runtime.indexing import indexed

Pair = namedtuple("Pair", "y x")
Plans = st.SearchStrategy[Node]

# The nodes that no random plan has yet: who finishes one takes it out and gives it a line in `STEPS`.
NOT_YET: Final = {
    "AssertCardinality",
    "Cache",
    "Choose",
    "Counter",
    "Files",
    "Filter",
    "FlatMap",
    "FromGenerator",
    "GroupByWindow",
    "Held",
    "IgnoreErrors",
    "Interleave",
    "Map",
    "PaddedBatch",
    "Prefetch",
    "Random",
    "Rebatch",
    "Sample",
    "Scan",
    "Snapshot",
    "TakeWhile",
    "Unbatch",
    "Unique",
    "Window",
    "WindowPart",
    "WithOptions",
}


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


_numbers: Final = st.integers(-4, 6)
_counts: Final = st.integers(-1, 6)

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
}


# Batches that do not fit into a batch: what an error in the middle does is part of every law.
_uneven: Final = st.builds(
    lambda stop, inner, outer: Batch(Batch(Range(0, stop), inner), outer),
    st.integers(3, 15),
    st.integers(2, 3),
    st.integers(2, 3),
)
_beginnings: Final = st.one_of([*SOURCES.values(), _uneven])


def _shuffles(child: Plans) -> Plans:
    sizes = st.sampled_from([-2, 1, 2, 3, 5, 100])
    seeds = st.tuples(st.integers(0, 9), st.integers(0, 9))

    def shuffled(node: Node, size: int, seed: tuple[int, int], reshuffle: bool) -> Node:
        size = 4 if size == UNKNOWN and node.size == INFINITE else size
        return Shuffle(node, size, seed, reshuffle=reshuffle)

    return st.builds(shuffled, child, sizes, seeds, st.booleans())


def _keys(child: Plans) -> Plans:
    seeds = st.tuples(st.integers(0, 9), st.integers(0, 9))
    return st.builds(WithKeys, child, seeds, reshuffle=st.booleans())


def _shards(child: Plans) -> Plans:
    places = st.integers(1, 3).flatmap(lambda n: st.tuples(st.just(n), st.integers(0, n - 1)))
    return st.builds(lambda node, place: Shard(node, *place), child, places)


def _zips(child: Plans) -> Plans:
    others = st.one_of(child, _beginnings)
    return st.one_of(
        st.builds(lambda one, two: Zip((0, 0), (one, two)), child, others),
        st.builds(lambda one, two: Zip({"b": 0, "a": (0,)}, (two, one)), child, others),
    )


def _chains(child: Plans) -> Plans:
    """Return plans whose second part is a variation of the first: the specs must fit."""
    others = st.sampled_from(
        [
            lambda node: node,
            copy.deepcopy,
            lambda node: Skip(node, 1),
            lambda node: Repeat(node, 2),
            lambda node: Batch(node, 2),
            lambda node: Batch(node, 1, drop_remainder=True),
        ]
    )
    return st.builds(lambda node, other: Concatenate(node, other(node)), child, others)


STEPS: Final[dict[type[Node], Callable[[Plans], Plans]]] = {
    Repeat: lambda child: st.builds(Repeat, child, st.integers(-1, 3)),
    Take: lambda child: st.builds(Take, child, _counts),
    Skip: lambda child: st.builds(Skip, child, st.integers(-1, 4)),
    Shard: _shards,
    Shuffle: _shuffles,
    Enumerate: lambda child: st.builds(Enumerate, child, st.integers(-2, 2)),
    WithKeys: _keys,
    Batch: lambda child: st.builds(Batch, child, st.integers(1, 4), drop_remainder=st.booleans()),
    Zip: _zips,
    Concatenate: _chains,
}


@st.composite
def plans(draw: st.DrawFn, most: int = 4) -> Node:
    """Return a source and up to `most` steps over it."""
    plan = draw(_beginnings)
    for step in draw(st.lists(st.sampled_from(list(STEPS.values())), max_size=most)):
        plan = draw(step(st.just(plan)))
    return plan


# For each node, the plans with that node at the top.
PLANS: Final = SOURCES | {kind: step(plans(most=3)) for kind, step in STEPS.items()}
KINDS: Final = list(PLANS)


def all_nodes() -> set[type[Node]]:
    """Return every node that a plan can have, wherever in evenfeed.plan it is."""
    for module in pkgutil.iter_modules(evenfeed.plan.__path__, "evenfeed.plan."):
        importlib.import_module(module.name)
    kinds, found = [Node], set[type[Node]]()
    while kinds:
        kind = kinds.pop()
        kinds.extend(kind.__subclasses__())
        if getattr(kind, "__final__", False) and kind.__module__.startswith("evenfeed.plan."):
            found.add(kind)
    return found


# Which nodes are to be read one element after another though they could be addressed: a law that
# holds both ways holds for the operators too, not only for the index space.
ways: Final = st.one_of(
    st.just(frozenset[type[Node]]()),
    st.just(frozenset(STEPS)),
    st.frozensets(st.sampled_from(list(STEPS)), min_size=1, max_size=3),
)


@contextmanager
def not_addressed(kinds: frozenset[type[Node]]) -> Iterator[None]:
    """Let nothing be addressed that has a node of these kinds in it."""

    def found(node: Node, *args: Any) -> Any:
        if any(type(part) in kinds for part in node.walk()):
            return None
        return indexed(node, *args)

    with patch.object(build, "indexed", found):
        yield


class Failed:
    """Stands for an element that is an error: a batch of two shapes."""

    def __repr__(self) -> str:
        return "FAILED"


FAILED: Final = Failed()
Events = Iterator[Any]  # elements, FAILED among them
Seeds = list[list[int]]  # of all that is random in a plan, parents first
Drawn = Shuffle | WithKeys


def meaning(node: Node, seeds: Seeds, epoch: int = 0) -> Events:
    """Yield the parts of each element of `node`, one element at a time; FAILED where one is an error.

    Args:
        node: A plan.
        seeds: The numbers that all that is random in it begins with, parents first.
        epoch: The number of the round of a repetition above.
    """
    own, rest = (seeds[:1], seeds[1:]) if isinstance(node, Drawn) else ([], seeds)
    children = []
    for child in node.children:
        count = sum(isinstance(part, Drawn) for part in child.walk())
        mine, rest = rest[:count], rest[count:]
        children.append(lambda at=epoch, child=child, mine=mine: meaning(child, mine, at))
    if isinstance(node, Drawn):
        drawn = _shuffled if isinstance(node, Shuffle) else _keyed
        return drawn(node, children[0](), key_of(*own[0], epoch if node.reshuffle else 0))
    if isinstance(node, Repeat):
        return _played(node, children[0], epoch)
    return _MEANINGS[type(node)](node, *(child() for child in children))


_MEANINGS: Final[dict[type[Node], Callable[..., Events]]] = {}


def means(kind: type[Node]) -> Callable[[Callable[..., Events]], Callable[..., Events]]:
    """Mark a function that is given a node and the elements of its children, and yields the node's."""

    def mark(function: Callable[..., Events]) -> Callable[..., Events]:
        _MEANINGS[kind] = function
        return function

    return mark


@means(Range)
def _counted(node: Range) -> Events:
    for number in range(node.start, node.stop, node.step):
        yield [np.int64(number).astype(node.dtype)]


@means(Tensor)
def _whole(node: Tensor) -> Events:
    yield list(node.arrays)


@means(TensorSlice)
def _sliced(node: TensorSlice) -> Events:
    for row in range(node.size):
        yield [None if array is None else array[row, ...] for array in node.arrays]


def _played(node: Repeat, start: Callable[[int], Events], epoch: int) -> Events:
    first = epoch * (node.count if node.count >= 0 else 2**64)
    if node.count and node.child.size == -1:
        first = epoch  # there is only one round
    played = 0
    while played != node.count:
        empty = True
        for element in start(first + played):
            empty = False
            yield element
        if empty:
            return
        played += 1


@means(Take)
def _first(node: Take, child: Events) -> Events:
    left = node.count
    while left != 0:
        element = next(child, None)
        if element is None:
            return
        left -= element is not FAILED
        yield element


@means(Skip)
def _rest(node: Skip, child: Events) -> Events:
    passed = 0
    while passed < node.count:
        element = next(child, None)
        if element is None:
            return
        passed = 0 if element is FAILED else passed + 1  # as in TensorFlow: the count starts anew
        if element is FAILED:
            yield FAILED
    if node.count >= 0:
        yield from child


@means(Shard)
def _every(node: Shard, child: Events) -> Events:
    number = 0
    for element in child:
        if element is FAILED or number % node.num_shards == node.index:
            yield element
        number += element is not FAILED


def _shuffled(node: Shuffle, child: Events, key: int) -> Events:
    buffer: list[Any] = []
    for element in child:
        if element is FAILED:
            yield FAILED
        else:
            buffer.append(element)
        if len(buffer) == node.buffer_size:
            break
    step = 0
    for element in child:
        if element is FAILED:
            yield FAILED
            continue
        slot = int(numbers_below(key, step, 1, len(buffer))[0])
        yield buffer[slot]
        buffer[slot] = element
        step += 1
    for slot in Permutation(key_of(key, 1), len(buffer)).stretch(0, len(buffer)):
        yield buffer[slot]


def _keyed(node: WithKeys, child: Events, key: int) -> Events:
    for number, element in enumerate(child):
        words = words_at(key, np.array([number]))[0]
        yield FAILED if element is FAILED else [words, *element]


@means(Enumerate)
def _numbered(node: Enumerate, child: Events) -> Events:
    number = node.start
    for element in child:
        yield FAILED if element is FAILED else [np.int64(number), *element]
        number += 1


@means(Batch)
def _batches(node: Batch, child: Events) -> Events:
    group: list[Any] = []
    for element in child:
        if element is FAILED:
            group = []
            yield FAILED
            continue
        group.append(element)
        if len(group) == node.batch_size:
            yield _stacked(group)
            group = []
    if group and not node.drop_remainder:
        yield _stacked(group)


def _stacked(group: list[Any]) -> Any:
    try:
        parts = zip(*group, strict=True)
        return [None if part[0] is None else np.stack(part) for part in parts]
    except ValueError:
        return FAILED


@means(Zip)
def _side_by_side(node: Zip, *children: Events) -> Events:
    while True:
        row: list[Any] = []
        for child in children:
            part = next(child, None)
            if part is None and not any_failed(row):
                return
            row.append(part)
        yield FAILED if any_failed(row) else [value for part in row for value in part]


@means(Concatenate)
def _one_after_the_other(node: Concatenate, first: Events, second: Events) -> Events:
    yield from first
    yield from second


def events(iterator: Iterator[Any], many: int) -> list[Any]:
    """Return up to `many` elements, FAILED for each that raised."""
    found: list[Any] = []
    while len(found) < many:
        try:
            found.append(next(iterator))
        except StopIteration:
            break
        except ValueError:
            found.append(FAILED)
    return found


def any_failed(found: list[Any]) -> bool:
    return any(element is FAILED for element in found)


def expected(plan: Node, iterator: ElementIterator, many: int) -> list[Any]:
    """Return what an iterator over `plan` must give: its seeds are the only thing taken from it."""
    parts = islice(meaning(plan, iterator.get_state()["run"]), many)
    return [part if part is FAILED else packed(plan, part) for part in parts]


def fresh(plan: Node) -> Node:
    """Return a plan that says the same and shares nothing: the dataset of another process."""
    return copy.deepcopy(plan)


def through_json(state: Any) -> Any:
    return json.loads(json.dumps(state))


def packed(node: Node, parts: list[Any]) -> Any:
    return pack(node.element_spec, parts, DATA)


def assert_equal(one: Any, two: Any) -> None:
    """Raise unless two elements have one structure and equal parts of equal shape and dtype."""
    assert (one is FAILED) == (two is FAILED)
    if one is FAILED:
        return
    first, second = flatten(one, DATA), flatten(two, DATA)
    assert type(one) is type(two) or not isinstance(one, (tuple, dict))
    assert len(first) == len(second)
    for mine, theirs in zip(first, second, strict=True):
        assert (mine is None) == (theirs is None)
        if mine is not None:
            assert isinstance(mine, np.ndarray)
            np.testing.assert_array_equal(mine, np.asarray(theirs), strict=True)


def assert_all_equal(one: list[Any], two: list[Any]) -> None:
    """Raise unless two lists of elements are equal."""
    assert len(one) == len(two), f"{one} and {two}"
    for mine, theirs in zip(one, two, strict=True):
        assert_equal(mine, theirs)
