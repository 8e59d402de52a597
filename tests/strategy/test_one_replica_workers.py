"""Workers with one replica each: their part of a value is a tensor, also from compiled functions."""

import pytest
from tests.strategy.starting import seen_by_workers

pytestmark = pytest.mark.slow

OWN = {
    "value, in a function": [[True, [2.0, 0.0]], [True, [4.0, 0.0]]],
    "value, compiled": [[True, [2.0, 0.0]], [True, [4.0, 0.0]]],
    "value, eager": [[True, [2.0, 0.0]], [True, [4.0, 0.0]]],
    "batch, in a function": [[True, [2.0, 0.0]], [True, [4.0, 0.0]]],
    "batch, compiled": [[True, [2.0, 0.0]], [True, [4.0, 0.0]]],
    "batch, eager": [[True, [2.0, 0.0]], [True, [4.0, 0.0]]],
    "again": [[4.0, 0.0], [8.0, 0.0]],
    "messages": [[], []],  # workers need not exchange the shapes of results of a common program
    "reduced": [[12.0, 0.0]] * 2,
    "gathered": [[4.0, 0.0, 8.0, 0.0]] * 2,
    "sum of scalars": [6.0] * 2,
    "mean in a function": [[1.5, 0.0]] * 2,
    "closed over": [[4.0, 0.0], [5.0, 0.0]],
    "assigned": [[3.0, 4.0]] * 2,
    "closed over a value": [[2.0, 0.0], [4.0, 0.0]],
}


@pytest.mark.parametrize("what", OWN)
def test_each_worker_sees_its_own(what):
    seen = seen_by_workers("one_replica_workers.py", 2, 1)
    assert [seen[worker][what] for worker in (0, 1)] == OWN[what]
