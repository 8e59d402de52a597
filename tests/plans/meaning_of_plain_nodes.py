"""What sources, orders, batches and combinations mean."""

from typing import Any

import numpy as np
from hypothesis import strategies as st
from tests.plans import steps
from tests.plans.meaning import FAILED, STEPS, Events, any_failed, means
from tests.plans.sources import Yields

from evenfeed.core.randomness.random_bits import Permutation, key_of, numbers_below, raw, words_at
from evenfeed.plan.batching import PaddedBatch, Rebatch, Unbatch
from evenfeed.plan.buffering import Cache, Prefetch, Snapshot
from evenfeed.plan.checking import AssertCardinality, IgnoreErrors, Unique
from evenfeed.plan.choosing import Choose, Counter, Random, Sample
from evenfeed.plan.combining import Concatenate, Zip
from evenfeed.plan.elementwise import Enumerate, WithKeys
from evenfeed.plan.grouping import Batch
from evenfeed.plan.options import Options, WithOptions
from evenfeed.plan.ordering import Repeat, Shard, Shuffle, Skip, Take
from evenfeed.plan.own_rows import OwnRows
from evenfeed.plan.sources import FromGenerator, Range, Tensor, TensorSlice
from evenfeed.plan.windows import Held

# Their meaning is in `meaning`: they have passes of their own.
STEPS[Repeat] = lambda child: st.builds(Repeat, child, st.integers(-1, 3))
STEPS[Concatenate] = steps.chains
STEPS[Cache] = steps.caches
STEPS[Snapshot] = steps.snapshots


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


@means(Held)
def _at_hand(node: Held) -> Events:
    for row in range(node.length):
        yield [None if c is None else _row(c, row) for c in node.columns]


def _row(column: Any, row: int) -> Any:
    return column[row, ...] if isinstance(column, np.ndarray) else column[row]


@means(Counter)
def _counted_on(node: Counter) -> Events:
    number = node.start
    while True:
        yield [np.array(number).astype(node.dtype)]
        number += node.step


@means(Random)
def _random(node: Random, key: int) -> Events:
    step = 0
    while True:
        yield [(raw(key, step, 1)[0] >> np.uint64(32)).astype(np.int64)]
        step += 1


@means(FromGenerator)
def _pulled(node: FromGenerator) -> Events:
    assert isinstance(node.generator, Yields)
    for item in node.generator.items:
        wrong = isinstance(item, str)
        yield FAILED if wrong else [np.array(item, node.signature.dtype)]
        if item == "raises" and node.generator.way == "generator":
            return


@means(Take, made_by=lambda child: st.builds(Take, child, st.integers(-1, 6)))
def _first(node: Take, child: Events) -> Events:
    left = node.count
    while left != 0:
        element = next(child, None)
        if element is None:
            return
        left -= element is not FAILED
        yield element


@means(Skip, made_by=lambda child: st.builds(Skip, child, st.integers(-1, 4)))
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


@means(Shard, made_by=steps.shards)
def _every(node: Shard, child: Events) -> Events:
    number = 0
    for element in child:
        if element is FAILED or number % node.num_shards == node.index:
            yield element
        number += element is not FAILED


@means(OwnRows, made_by=steps.own_rows)
def _own(node: OwnRows, child: Events) -> Events:
    for group in _grouped(child, node.batch_size, node.drop_remainder):
        if group is FAILED:
            yield FAILED
            continue
        for start, stop in node.share.pieces(len(group)):
            yield from group[start:stop]


@means(Shuffle, made_by=steps.shuffles)
def _shuffled(node: Shuffle, key: int, child: Events) -> Events:
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


@means(Prefetch, made_by=lambda child: st.builds(Prefetch, child, st.sampled_from([-1, 0, 1, 3])))
@means(WithOptions, made_by=lambda child: st.builds(WithOptions, child, st.builds(Options)))
def _as_they_are(node: Any, child: Events) -> Events:
    yield from child


@means(IgnoreErrors, made_by=lambda child: st.builds(IgnoreErrors, child.map(steps.finite)))
def _good_ones(node: IgnoreErrors, child: Events) -> Events:
    yield from (element for element in child if element is not FAILED)


@means(Unique, made_by=steps.unique)
def _new_ones(node: Unique, child: Events) -> Events:
    seen = set[int]()
    for element in child:
        if element is FAILED:
            yield FAILED
        elif int(element[0]) not in seen:
            seen.add(int(element[0]))
            yield element


@means(AssertCardinality, made_by=steps.promised)
def _promised(node: AssertCardinality, child: Events) -> Events:
    passed = 0
    for element in child:
        if passed == node.count and element is not FAILED:
            yield FAILED  # one too many
            return
        passed += element is not FAILED
        yield element
    if passed != node.count:
        yield FAILED


@means(
    WithKeys, made_by=lambda child: st.builds(WithKeys, child, steps.seeds, reshuffle=st.booleans())
)
def _keyed(node: WithKeys, key: int, child: Events) -> Events:
    for number, element in enumerate(child):
        words = words_at(key, np.array([number]))[0]
        yield FAILED if element is FAILED else [words, *element]


@means(Enumerate, made_by=lambda child: st.builds(Enumerate, child, st.integers(-2, 2)))
def _numbered(node: Enumerate, child: Events) -> Events:
    number = node.start
    for element in child:
        yield FAILED if element is FAILED else [np.int64(number), *element]
        number += 1


@means(
    Batch,
    made_by=lambda child: st.builds(
        Batch, child.map(steps.tensors), st.integers(1, 4), drop_remainder=st.booleans()
    ),
)
def _batches(node: Batch, child: Events) -> Events:
    for group in _grouped(child, node.batch_size, node.drop_remainder):
        yield FAILED if group is FAILED else _stacked(group)


def _grouped(child: Events, size: int, drop_remainder: bool) -> Events:
    """Yield groups of elements; FAILED for one that an error fell into."""
    group: list[Any] = []
    for element in child:
        if element is FAILED:
            group = []
            yield FAILED
            continue
        group.append(element)
        if len(group) == size:
            yield group
            group = []
    if group and not drop_remainder:
        yield group


def _stacked(group: list[Any]) -> Any:
    try:
        parts = zip(*group, strict=True)
        return [None if part[0] is None else np.stack(part) for part in parts]
    except ValueError:
        return FAILED


@means(Zip, made_by=steps.zips)
def _side_by_side(node: Zip, *children: Events) -> Events:
    while True:
        row: list[Any] = []
        for child in children:
            part = next(child, None)
            if part is None and not any_failed(row):
                return
            row.append(part)
        yield FAILED if any_failed(row) else [value for part in row for value in part]


@means(PaddedBatch, made_by=steps.padded)
def _padded_batches(node: PaddedBatch, child: Events) -> Events:
    for group in _grouped(child, node.batch_size, node.drop_remainder):
        yield FAILED if group is FAILED else _padded(node, group)


def _padded(node: PaddedBatch, group: list[Any]) -> Any:
    parts = []
    for rows, shape, fill in zip(zip(*group, strict=True), node.shapes, node.values, strict=True):
        largest = [max(dims) for dims in zip(*(row.shape for row in rows), strict=True)]
        target = [most if dim is None else dim for most, dim in zip(largest, shape, strict=True)]
        if any(most > dim for most, dim in zip(largest, target, strict=True)):
            return FAILED
        out = np.full((len(rows), *target), fill[()], fill.dtype)
        for number, row in enumerate(rows):
            out[(number, *map(slice, row.shape))] = row[()]
        parts.append(out)
    return parts


@means(Unbatch, made_by=lambda child: st.builds(Unbatch, child.map(steps.with_rows)))
def _rows(node: Unbatch | Rebatch, child: Events) -> Events:
    for element in child:
        lengths = set() if element is FAILED else {p.shape[:1] for p in element if p is not None}
        if len(lengths) != 1 or () in lengths:
            yield FAILED
            continue
        for row in range(lengths.pop()[0]):
            yield [None if part is None else part[row, ...] for part in element]


@means(Rebatch, made_by=steps.rebatched)
def _batched_anew(node: Rebatch, child: Events) -> Events:
    turn, group = 0, list[Any]()
    for row in _rows(node, child):
        if row is FAILED:
            group = []
            yield FAILED
            continue
        group.append(row)
        if len(group) == node.batch_sizes[turn]:
            yield _stacked(group)
            group, turn = [], (turn + 1) % len(node.batch_sizes)
    if group and not node.drop_remainder:
        yield _stacked(group)


@means(Choose, made_by=steps.choices)
def _chosen(node: Choose, *children: Events) -> Events:
    *parts, choices = children
    yield from _read_chosen(parts, choices, stop_on_empty=node.stop_on_empty)


@means(Sample, made_by=steps.samples)
def _sampled(node: Sample, key: int, *children: Events) -> Events:
    parts = children[: len(node.parts)]
    weights = children[len(parts)] if len(children) > len(parts) else None
    choices = _drawn(node, key, weights)
    yield from _read_chosen(parts, choices, stop_on_empty=node.stop_on_empty)


def _drawn(node: Sample, key: int, weights: Events | None) -> Events:
    step = 0
    while True:
        row = [np.array(node.weights)] if weights is None else next(weights, None)
        if row is None:
            return
        ends = np.cumsum(np.maximum(row[0], 0))
        point = float(raw(key, step, 1)[0] >> np.uint64(11)) * 2.0**-53 * ends[-1]
        yield [np.array(sum(point >= end for end in ends[:-1]))]
        step += 1


def _read_chosen(parts: Any, choices: Events, *, stop_on_empty: bool) -> Events:
    ended = set[int]()
    for choice in choices:
        number = None if choice is FAILED else int(choice[0])
        if number is None or not 0 <= number < len(parts):
            yield FAILED
            continue
        element = None if number in ended else next(parts[number], None)
        if element is not None:
            yield element
            continue
        ended.add(number)
        if stop_on_empty or len(ended) == len(parts):
            return
