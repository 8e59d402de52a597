"""Functions that are traced with a different constant on each worker, such as its index."""

import pytest
from tests.strategy.starting import seen_by_workers

pytestmark = pytest.mark.slow

LABELS = (
    "reduce of a run",
    "gather of a run",
    "mean of what a worker has",
    "all_reduce",
    "all_gather",
    "merge_call",
    "assigned",
    "read",
    "with data",
)


def expected(replicas):
    """Return the results of two workers: worker 0 has zeros, worker 1 has ones."""
    total, joined = [replicas] * 2, [0] * 2 * replicas + [1] * 2 * replicas
    return {
        **dict.fromkeys(LABELS, total),
        "gather of a run": joined,
        "all_gather": joined,
        "mean of what a worker has": [0.5, 0.5],
        "with data": [3 * replicas, 4 * replicas],
    }


@pytest.mark.parametrize("replicas", [1, 2])
@pytest.mark.parametrize("label", LABELS)
def test_a_constant_is_that_of_each_worker(label, replicas):
    seen = seen_by_workers("constant_workers.py", 2, replicas)
    assert [seen[worker][label] for worker in (0, 1)] == [expected(replicas)[label]] * 2
