"""Bad records over workers: all stay in step, count the same, and end together."""

import re

import pytest
from tests.feeding.distribution import distributed, strategy_of, with_lanes, with_policy
from tests.feeding.workers import Cluster, InMemory, on_all, worker_of

import evenfeed as tf
from evenfeed.core.batch_split import Share
from evenfeed.core.errors import AbortedError
from evenfeed.dataset import plan_of
from evenfeed.feeding.ignored_errors import all_ignored
from evenfeed.feeding.reading import BatchReading

Dataset = tf.data.Dataset


def picky(x):
    if x % 5 == 3:
        raise KeyError(int(x))
    return x


def rows(policy, **limits):
    kept = Dataset.range(20).map(picky, vectorize=False).ignore_errors(**limits).batch(4)
    return with_lanes(kept, 2) if policy == "LANES" else with_policy(kept, policy)


GOOD = [x for x in range(20) if x % 5 != 3]
BATCHES = {
    "DATA": [GOOD[at : at + 4] for at in range(0, 16, 4)],
    "LANES": [GOOD[at : at + 2] + GOOD[at + 8 : at + 10] for at in range(0, 8, 2)],
}


@pytest.mark.parametrize("policy", BATCHES)
@pytest.mark.parametrize("workers", [1, 2])
def test_all_workers_stay_in_step_and_list_the_same_errors(policy, workers):
    memory = InMemory(workers)
    each = [plan_of(rows(policy)) for _ in range(workers)]
    plans = iter(each)
    cluster = Cluster(lambda: next(plans), workers, 1, in_turn=policy == "DATA")
    assert cluster.read() == [[(row,) for row in batch] for batch in BATCHES[policy]]

    def all_of(worker):
        topic = worker_of(Share(worker, workers), memory).topic if workers > 1 else None
        return all_ignored([each[worker]], topic, shared=policy == "DATA")

    listed = on_all(workers, all_of)
    assert [ignored.count for ignored in listed] == [4] * workers
    for ignored in listed:
        reasons = " ".join(one.reason for one in ignored.skipped)
        assert sorted(map(int, re.findall(r"KeyError: (\d+)", reasons))) == [3, 8, 13, 18]


@pytest.mark.parametrize("policy", BATCHES)
def test_a_limit_ends_all_workers_at_the_same_step(policy):
    memory = InMemory(2)

    def outcomes(worker):
        plan = plan_of(rows(policy, max_total=1))
        steps = BatchReading(plan, worker_of(Share(worker, 2), memory)).steps()
        found = []
        for _ in range(4):
            try:
                steps.read()
                found.append("step")
            except (KeyError, AbortedError):
                found.append("error")
        return found

    first, second = on_all(2, outcomes)
    assert first == second
    assert "error" in first


def test_a_distributed_dataset_lists_them():
    data = distributed(rows("DATA"), 2)
    assert len(list(data)) == 4
    assert data.ignored_errors().count == 4
    function = strategy_of(1).distribute_datasets_from_function(lambda _: rows("OFF"))
    assert len(list(function)) == 4
    assert function.ignored_errors().count == 4
