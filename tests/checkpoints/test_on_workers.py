"""Two workers, in real processes, save one checkpoint together."""

from pathlib import Path

import pytest
from tests.strategy.starting import seen_by_workers

pytestmark = pytest.mark.slow

PROGRAM = str(Path(__file__).parent / "programs" / "two_workers.py")


@pytest.fixture(scope="module")
def seen(tmp_path_factory):
    return seen_by_workers(PROGRAM, 2, 2, str(tmp_path_factory.mktemp("saved")))


def test_every_worker_gets_its_values_and_rows_back(seen):
    for worker in (0, 1):
        assert seen[worker]["found"] == {
            "mirrored": [[0, 1, 2]] * 2,
            "total": 16,
            "x": [[4, 4]] * 2,
            "plain": 0,
            "goes on": True,
            "steps": 5,
        }


def test_every_worker_sees_the_complete_checkpoint_and_no_deleted_one(seen):
    for worker in (0, 1):
        assert seen[worker]["path"] == "ckpt-2"
        assert seen[worker]["listed"] == ["checkpoint", "ckpt-2"]


def test_orbax_saves_the_position_of_every_worker_with_the_model(seen):
    for worker in (0, 1):
        assert seen[worker]["orbax"]


def test_workers_that_save_different_things_are_told_so(seen):
    for worker in (0, 1):
        paths, keys = seen[worker]["paths"], seen[worker]["keys"]
        assert paths.startswith("InvalidArgumentError: All workers save one checkpoint together")
        assert "pass the same path on all workers" in paths
        assert keys.startswith("InvalidArgumentError: Worker 0 and worker 1 save different values")
