"""Sharding by row: a worker's rows are selected as early as their positions are known."""

from itertools import chain

import pytest
from tests.feeding.distribution import numbers, with_policy
from tests.feeding.workers import InMemory, all_pieces, fed, on_all, reading

import evenfeed as tf
from evenfeed.core.batch_split import Share
from evenfeed.dataset import plan_of
from evenfeed.plan.elementwise import Map
from evenfeed.plan.own_rows import OwnBatches, OwnRows
from evenfeed.plan.sources import Range
from evenfeed.rewrite.by_row import pushed

Dataset = tf.data.Dataset
SIZE, BATCH, WORKERS = 24, 6, 3


class Counting:
    """A function that cannot be traced and records its arguments."""

    def __init__(self) -> None:
        self.seen: list[int] = []

    def __call__(self, x):
        self.seen.append(int(x))
        return x * 10


def test_the_rows_of_a_worker_are_selected_at_the_source():
    share = Share(1, 2, 1)
    plan = plan_of(Dataset.range(8).map(Counting(), vectorize=False).batch(4))
    found = pushed(plan, share)
    assert found.stops is None
    assert isinstance(found.plan, OwnBatches)
    assert isinstance(found.plan.child, Map)
    assert found.plan.child.child == OwnRows(Range(0, 8), 4, share)


BELOW = {
    "map": lambda d, f: d.map(f, vectorize=False).batch(BATCH),
    "threads": lambda d, f: d.map(f, vectorize=False, num_parallel_calls=3).batch(BATCH),
    "map and shuffle": lambda d, f: d.map(f, vectorize=False).shuffle(9, seed=1).batch(BATCH),
    "shuffle and map": lambda d, f: d.shuffle(9, seed=1).map(f, vectorize=False).batch(BATCH),
    "map, skip, take, shard": lambda d, f: (
        d.repeat(4).map(f, vectorize=False).skip(6).take(48).shard(2, 1).batch(BATCH)
    ),
    "two maps": lambda d, f: d.map(lambda x: x + 0).map(f, vectorize=False).batch(BATCH),
    "prefetch": lambda d, f: d.map(f, vectorize=False).prefetch(2).batch(BATCH).prefetch(1),
    "cache": lambda d, f: d.map(f, vectorize=False).cache().batch(BATCH),
    "zip": lambda d, f: (
        Dataset.zip((d.map(f, vectorize=False), d)).map(lambda x, _: x).batch(BATCH)
    ),
    "concatenate": lambda d, f: (
        d.take(12)
        .map(f, vectorize=False)
        .batch(BATCH)
        .concatenate(d.skip(12).map(f, vectorize=False).batch(BATCH))
    ),
    "behind a filter": lambda d, f: d.filter(lambda x: x >= 0).map(f, vectorize=False).batch(BATCH),
}
ABOVE = {
    "filter behind": lambda d, f: d.map(f, vectorize=False).filter(lambda x: x >= 0).batch(BATCH),
    "padded": lambda d, f: d.map(f, vectorize=False).padded_batch(BATCH),
    "mapped batches": lambda d, f: d.map(f, vectorize=False).batch(BATCH).map(lambda x: x),
    "enumerate": lambda d, f: (
        d.map(f, vectorize=False).enumerate().map(lambda _, x: x).batch(BATCH)
    ),
    "cache and shuffle": lambda d, f: (
        d.map(f, vectorize=False).cache().shuffle(9, seed=1).batch(BATCH)
    ),
}


def calls(make):
    """Return the total number of rows, and the arguments of each worker's function."""
    functions = [Counting() for _ in range(WORKERS)]
    memory = InMemory(WORKERS)

    def run(worker):
        function = functions[worker]
        share = Share(worker, WORKERS, 1)
        steps = reading(lambda _: make(numbers(range(SIZE)), function), share, memory).steps()
        found = all_pieces(steps, 1)
        return [row for step in found for piece in step for row in piece]

    rows = on_all(WORKERS, run)
    return rows, [function.seen for function in functions]


def undistributed(make):
    return sorted(int(x) for x in make(numbers(range(SIZE)), Counting()).unbatch())


@pytest.mark.parametrize("name", BELOW)
def test_a_function_is_called_for_its_own_rows_alone_below(name):
    rows, seen = calls(BELOW[name])
    assert sorted(chain(*rows)) == undistributed(BELOW[name])
    learnt = (
        2 if name == "concatenate" else 1
    )  # calls on a first row, to find the spec of the result
    for own, called in zip(rows, seen, strict=True):
        assert len(own) == SIZE // WORKERS
        assert {10 * x for x in called} >= set(own)
        assert len(called) <= len(own) + learnt


@pytest.mark.parametrize("name", ABOVE)
def test_a_function_is_called_for_all_rows_above(name, caplog):
    rows, seen = calls(ABOVE[name])
    assert sorted(chain(*rows)) == [10 * x for x in range(SIZE)]
    for called in seen:
        assert len(set(called)) == SIZE
    said = [r.message for r in caplog.records if r.levelname == "WARNING"]
    assert len(said) == WORKERS  # one per worker
    assert all("every worker computes all rows up to" in text for text in said)
    assert all("test_by_row.py:" in text for text in said)


def test_records_of_files_are_chosen_by_position(tmp_path, caplog):
    paths = [str(tmp_path / f"{name}.tfrecord") for name in "ab"]
    for path, count in zip(paths, (7, 2), strict=True):
        with tf.io.TFRecordWriter(path) as writer:
            for number in range(count):
                writer.write(b"%d" % number)

    def make(_):
        return with_policy(tf.data.TFRecordDataset(paths).batch(4), "DATA")

    found = fed(make, 2)
    assert found[0] == [[[b"0", b"1"]], [[b"4", b"5"]], [[b"1"]]]
    assert found[1] == [[[b"2", b"3"]], [[b"6", b"0"]], [[]]]
    assert caplog.records == []


def test_batches_too_small_for_the_cluster_are_computed_as_a_whole():
    found = fed(lambda _: Dataset.range(8).batch(2), 3)
    assert found == [[[[0]], [[2]], [[4]], [[6]]], [[[1]], [[3]], [[5]], [[7]]], [[[]]] * 4]


def test_the_users_cache_is_not_shared_with_the_workers_plan():
    data = Dataset.range(8).cache()
    assert fed(lambda _: data.batch(4), 2)[0] == [[[0, 1]], [[4, 5]]]
    assert [int(x) for x in data] == list(range(8))


def test_a_row_that_fails_takes_the_place_of_its_batch_on_its_worker():
    def picky(x):
        if x == 5:
            raise KeyError(5)
        return x

    def run(worker):
        data = numbers(range(16)).map(picky, vectorize=False).batch(8)
        steps = reading(lambda _: data, Share(worker, 2, 2), InMemory(2)).steps()
        found = []
        while True:
            try:
                column = steps.read()[0]
            except StopIteration:
                return found
            except KeyError:
                found.append("failed")
            else:
                found.append(column.tolist())

    assert on_all(2, run) == [["failed", [8, 9, 12, 13]], [[2, 3, 6, 7], [10, 11, 14, 15]]]


def test_a_row_that_fails_below_is_lost_to_all_workers():
    def picky(x):
        if x == 5:
            raise KeyError(5)
        return True

    def run(worker):
        data = numbers(range(13)).filter(picky).map(lambda x: x + 0, vectorize=False).batch(4)
        steps = reading(lambda _: data, Share(worker, 2, 1), InMemory(2)).steps()
        found = []
        while True:
            try:
                column = steps.read()[0]
            except StopIteration:
                return found
            except KeyError:
                found.append("failed")
            else:
                found.append((column[0] if isinstance(column, list) else column).tolist())

    assert on_all(2, run) == [
        [[0, 1], "failed", [6, 7], [10, 11]],
        [[2, 3], "failed", [8, 9], [12]],
    ]
