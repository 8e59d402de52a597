"""MultiWorkerMirroredStrategy on two workers with two replicas each, in real processes."""

import pytest
from tests.feeding.distribution import distributed, with_lanes, with_policy
from tests.strategy.starting import seen_by_workers

from evenfeed.data import Dataset

pytestmark = pytest.mark.slow


def seen():
    return seen_by_workers("two_workers.py")


# The results of both workers, or those of each worker in turn if they differ.
SAME = {
    "replicas": 4,
    "devices": [f"/job:worker/replica:0/task:{task}" for task in (0, 0, 1, 1)],
    "sum": [10.0],
    "mean": [2.5],
    "uneven sum": 0 + 1 + 3 + 6,
    "uneven mean": 1.0,
    "mean of a plain value": 1.0,
    "gather": [1.0, 2.0, 3.0, 4.0],
    "uneven gather": [0, 0, 1, 0, 1, 2, 0, 1, 2, 3],
    "uneven all_gather": [[0, 0, 1, 0, 1, 2, 0, 1, 2, 3]] * 2,
    "array": [[4], 2, 4],
    "from the chief": [[[1.0, 2.0]] * 2, [1.0, 2.0]],
    "variables, eager": [[10.0, 10.0], [2.5, 2.5], [1.0, 1.0]],
    "variables, compiled": [[20.0, 20.0], [5.0, 5.0], [2.0, 2.0]],
    "assigned": [[5.0, 6.0]] * 2,
    "reduced in a function": [50.0],
    "shuffled": list(range(8)),
    "padded, compiled": [[28.0, 28.0], [17.0, 17.0]],
}
EACH = {
    "values": [[[1.0], [2.0]], [[3.0], [4.0]]],
    "saves": [True, False],
    "own devices": [
        [f"/job:worker/replica:0/task:{task}/device:CPU:{index}" for index in (0, 1)]
        for task in (0, 1)
    ],
    "results, eager": [[[1.0, 2.0], [2.0, 4.0]], [[3.0, 6.0], [4.0, 8.0]]],
    "results, compiled": [[[1.0, 2.0], [2.0, 4.0]], [[3.0, 6.0], [4.0, 8.0]]],
    "counter, eager": [[[1.0, 2.0], 10.0], [[3.0, 4.0], 10.0]],
    "counter, compiled": [[[2.0, 4.0], 20.0], [[6.0, 8.0], 20.0]],
    "rows of batches": [[[[0, 1], [4, 5]], [[8], []]], [[[2, 3], [6, 7]], [[9], []]]],
    "batches of its own": [
        [[[0, 1], [2, 3]], [[4, 5], [6, 7]]],
        [[[8, 9], []], [[], []]],
    ],
    "of a function": [
        [[[0], [1]], [[2], []], [[], []], [[], []]],
        [[[0], [1]], [[2], [3]], [[4], [5]], [[6], []]],
    ],
}


@pytest.mark.parametrize("what", SAME)
def test_every_worker_sees_the_same(what):
    assert [seen()[worker][what] for worker in (0, 1)] == [SAME[what]] * 2


@pytest.mark.parametrize("what", EACH)
def test_each_worker_sees_its_own(what):
    assert [seen()[worker][what] for worker in (0, 1)] == EACH[what]


@pytest.mark.parametrize("way", ["eager", "compiled"])
def test_replicas_count_and_meet_over_all_workers(way):
    for worker, ids in enumerate(([0, 1], [2, 3])):
        found, count, total, mean, joined = seen()[worker][way]
        assert found == ids
        assert set(count) == {4}
        assert (total, mean) == ([[10.0]] * 2, [[2.5]] * 2)
        assert joined == [[1.0, 2.0, 3.0, 4.0]] * 2


@pytest.mark.parametrize("policy", ["DATA", "LANES", "OFF"])
def test_all_workers_save_the_same_state(policy):
    assert seen()[0]["states"][policy] == seen()[1]["states"][policy]


def test_one_worker_continues_where_two_stopped():
    rows = Dataset.range(40).filter(lambda x: x % 4 != 1).batch(8)
    kept = [row for row in range(40) if row % 4 != 1]
    for dataset, policy, rest in (
        (with_policy(rows, "DATA"), "DATA", [kept[at : at + 8] for at in (8, 16, 24)]),
        (with_lanes(rows, 4), "LANES", None),
    ):
        iterator = iter(distributed(dataset, 1))
        first = next(iterator)
        whole = [x.tolist() for x in iterator]
        iterator.set_state(seen()[0]["states"][policy])
        found = [x.tolist() for x in iterator]
        assert len(first) == 8
        assert found == whole == (rest or whole)


def test_nothing_that_was_seen_is_left_out():
    assert set(seen()[0]) == {*SAME, *EACH, "eager", "compiled", "states"}
