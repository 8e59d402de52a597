"""Training that is killed anywhere, and continued on another number of workers, is the training that was not killed."""

import sys

import pytest
from tests.reliability.kills import KINDS, play


@pytest.mark.slow
@pytest.mark.timeout(300)  # eleven starts of several processes each
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_ten_kills_change_neither_rows_nor_losses(tmp_path):
    counts = play(10, seed=1, root=tmp_path)
    assert all(counts.kills[kind] == 2 for kind in KINDS)
    assert counts.resized > 2
    assert counts.steps >= 96
