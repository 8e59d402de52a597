"""Epochs with an uneven last batch, on workers in real processes: compiled programs are reused."""

import numpy as np
import pytest
from tests.strategy.starting import seen_by_workers

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("replicas", [1, 2])
def test_workers_trace_nothing_after_the_first_epoch(replicas):
    seen = seen_by_workers("epochs_workers.py", 2, replicas)
    for worker in (0, 1):
        # One for even and one for uneven parts. Weights that a step has returned are distributed values, unless
        # a worker has one replica: then they are tensors, like those before the first step.
        assert seen[worker]["functional"] == [1 + replicas] * 3
        assert seen[worker]["variables"] == [2, 2, 2]
        np.testing.assert_allclose(seen[worker]["weights"], seen[0]["variable"], rtol=1e-5)
