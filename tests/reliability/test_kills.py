"""Training that is killed anywhere, and continued on another number of workers, is the training that was not killed."""

import sys

import pytest
from tests.reliability.kills import KINDS, play


@pytest.mark.slow
@pytest.mark.timeout(300)  # seven starts of several processes each
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
@pytest.mark.parametrize(("way", "seed"), [("data", 1), ("lanes", 3)])
def test_five_kills_change_neither_rows_nor_losses(tmp_path, way, seed):
    counts = play(5, seed, tmp_path, [way])
    assert all(counts.kills[kind] == 1 for kind in KINDS)
    assert counts.resized
    assert counts.steps >= 96
    assert bool(counts.shared) == (way == "data")  # its rows come from a process
