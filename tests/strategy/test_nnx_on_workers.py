"""flax.nnx modules on workers in real processes: each worker's module is trained, also on uneven parts."""

import numpy as np
import pytest
from tests.strategy.starting import seen_by_workers

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("replicas", [1, 2])
def test_every_workers_module_is_trained_as_on_one_device(replicas):
    seen = seen_by_workers("nnx_workers.py", 2, replicas)
    for worker in (0, 1):
        for way in ("eager", "compiled", "of a function"):
            np.testing.assert_allclose(seen[worker][way], seen[0]["alone"], rtol=1e-4)
            assert seen[worker][f"{way}, steps"] == 4
        assert seen[worker]["traces"] == 2  # one for even and one for uneven parts
