"""Lanes: the global batches do not depend on the number of workers and replicas, nor on where the program stopped."""

import tempfile
from collections import Counter
from collections.abc import Callable
from functools import cache
from itertools import zip_longest
from pathlib import Path
from typing import Any, Final

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.feeding.distribution import with_lanes
from tests.feeding.workers import Cluster
from tests.plans import fresh
from tests.plans.batched import Datasets, batches_of

import evenfeed as tf
from evenfeed.dataset import plan_of
from evenfeed.plan.choosing import Sample
from evenfeed.plan.elementwise import WithKeys
from evenfeed.plan.node import Node
from evenfeed.plan.ordering import Shuffle

LANES: Final = 4
clusters: Final = st.tuples(st.sampled_from([1, 2, 4]), st.integers(1, 4))
batch_sizes: Final = st.sampled_from([4, 8, 12])

_folder: Final = tempfile.TemporaryDirectory(prefix="evenfeed-lanes-")


@cache
def written(number: int, count: int) -> str:
    """Return the path of a file with some lines, which no other file has."""
    path = Path(_folder.name) / f"{number}-{count}.txt"
    path.write_text("".join(f"{100 * number + line}\n" for line in range(count)))
    return str(path)


def number_of(line: Any) -> Any:
    return tf.strings.to_number(line, tf.int64)


def lines(paths: list[str]) -> Any:
    return tf.data.TextLineDataset(paths).map(number_of)


def lines_in_turn(paths: list[str]) -> Any:
    names = tf.data.Dataset.from_tensor_slices(np.array([path.encode() for path in paths], object))
    return names.interleave(tf.data.TextLineDataset, cycle_length=2).map(number_of)


def twice(x: Any) -> Any:
    return np.int64(int(x) * 2)


# What a lane runs on its own. All keep every row, if they do not say otherwise.
KEEP_ALL: Final[list[Datasets]] = [
    lambda rows: rows.shuffle(3, seed=3),
    lambda rows: rows.shuffle(5, seed=1, reshuffle_each_iteration=True),
    lambda rows: rows.map(lambda x: x + 1000),
    lambda rows: rows.map(twice, vectorize=False),
    lambda rows: rows.prefetch(2),
    lambda rows: rows.cache(),
    lambda rows: rows.batch(2).unbatch(),
    lambda rows: rows.scan(np.int64(0), lambda carried, x: (carried + 1, x)),
]
CHANGE: Final[list[Datasets]] = [
    lambda rows: rows.filter(lambda x: x % 3 != 1),
    lambda rows: rows.repeat(2),
    lambda rows: rows.concatenate(rows),
    lambda rows: rows.flat_map(lambda x: tf.data.Dataset.from_tensors(x).repeat(2)),
    lambda rows: rows.random_map(lambda key, x: x, seed=4),
    lambda rows: tf.data.Dataset.sample_from_datasets([rows, rows.map(lambda x: -x)], seed=2),
    lambda rows: rows.group_by_window(lambda x: x % 2, lambda _, group: group.take(2), 3),
]
ABOVE: Final[list[Datasets]] = [
    lambda batches: batches,
    lambda batches: batches.repeat(2),
    lambda batches: batches.take(3),
    lambda batches: batches.skip(1),
    lambda batches: batches.shuffle(3, seed=1),
    lambda batches: batches.prefetch(1),
    lambda batches: batches.map(lambda x: x * 2),
]


@st.composite
def pipelines(draw: st.DrawFn) -> Callable[[Any, int], Any]:
    """Return what follows the source: rows, batches of a size, and what stands above them."""
    over = draw(st.lists(st.sampled_from([*KEEP_ALL, *CHANGE]), max_size=3))
    above = draw(st.sampled_from(ABOVE))

    def made(rows: Any, size: int) -> Any:
        for step in over:
            rows = step(rows)
        return above(rows.batch(size))

    return made


def read(plan: Node, cluster: tuple[int, int], state: Any = None, most: int = 400) -> Any:
    """Return global batches after a state, and the state after them."""
    workers = Cluster(lambda: fresh(plan), *cluster, in_turn=False)
    try:
        if state is not None:
            workers.restore(state)
        return workers.read(most), workers.state()
    finally:
        workers.close()


def assert_lasts(plan: Node, whole: list[Any], data: st.DataObject, on: Any) -> None:
    """Stop twice, each time on another cluster: the global batches are always the same."""
    first, second, third = on
    taken = data.draw(st.integers(0, len(whole)))
    more = data.draw(st.integers(0, len(whole) - taken))
    found, state = read(plan, first, most=taken)
    again, later = read(plan, second, state, more)
    rest, _ = read(plan, third, later)
    assert found + again + rest == whole


@settings(max_examples=40)
@given(
    st.lists(st.sampled_from([0, 1, 3, 7, 9]), min_size=LANES, max_size=6),
    st.data(),
    pipelines(),
    st.tuples(clusters, clusters, clusters),
)
def test_lanes_of_files(counts, data, made, on):
    paths = [written(number, count) for number, count in enumerate(counts)]
    source = data.draw(st.sampled_from([lines, lines_in_turn]))
    size = data.draw(batch_sizes)
    plan = plan_of(with_lanes(made(source(paths), size), LANES))
    whole, _ = read(plan, (1, 1))
    if not has_seeds(plan):  # each lane reads every fourth file, by a pipeline of its own
        own = [
            batches_of(plan_of(made(source(paths[n::LANES]), size // LANES))) for n in range(LANES)
        ]
        assert whole == [
            [row for part in parts for row in part] for parts in zip_longest(*own, fillvalue=[])
        ]
    assert_lasts(plan, whole, data, on)


@settings(max_examples=40)
@given(
    st.lists(st.sampled_from([0, 1, 3, 7, 30]), min_size=1, max_size=LANES - 1),
    st.data(),
    pipelines(),
    st.tuples(clusters, clusters, clusters),
)
def test_lanes_of_lines_of_few_files(counts, data, made, on):
    paths = [written(number, count) for number, count in enumerate(counts)]
    size = data.draw(batch_sizes)
    plan = plan_of(with_lanes(made(lines(paths), size), LANES))
    whole, _ = read(plan, (1, 1))
    assert_lasts(plan, whole, data, on)
    found, _ = read(plan_of(with_lanes(lines(paths).batch(size), LANES)), (2, 2))
    rows = Counter((int(row),) for row in lines(paths))
    assert Counter(row for batch in found for row in batch) == rows


def has_seeds(plan: Node) -> bool:
    return any(isinstance(node, (Sample, Shuffle, WithKeys)) for node in plan.walk())


@settings(max_examples=40)
@given(st.integers(0, 60), st.data(), pipelines(), st.tuples(clusters, clusters, clusters))
def test_lanes_of_rows(count, data, made, on):
    plan = plan_of(with_lanes(made(tf.data.Dataset.range(count), data.draw(batch_sizes)), LANES))
    whole, _ = read(plan, (1, 1))
    assert_lasts(plan, whole, data, on)


@settings(max_examples=40)
@given(
    st.integers(0, 60),
    st.lists(st.sampled_from(KEEP_ALL[:2] + KEEP_ALL[4:]), max_size=4),
    batch_sizes,
)
def test_lanes_deliver_every_row_once(count, over, size):
    rows = tf.data.Dataset.range(count)
    for step in over:
        rows = step(rows)
    whole, _ = read(plan_of(with_lanes(rows.batch(size), LANES)), (2, 2))
    assert Counter(row for batch in whole for row in batch) == Counter((n,) for n in range(count))
    assert all(len(batch) == size for batch in whole[: count // LANES // (size // LANES)])
