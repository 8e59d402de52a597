"""Two workers, in real processes, save one checkpoint together."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import jax.numpy as jnp
import pytest
from tests.processes import children_of, wait_until
from tests.strategy.starting import seen_by_workers

import evenfeed as tf
from evenfeed.cluster.launching import environments

pytestmark = pytest.mark.slow

PROGRAMS = Path(__file__).parent / "programs"
PROGRAM = str(PROGRAMS / "two_workers.py")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("saved")


@pytest.fixture(scope="module")
def seen(folder):
    return seen_by_workers(PROGRAM, 2, 2, str(folder))


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


def test_a_worker_that_does_not_tell_its_position_is_named_to_the_others(seen):
    assert seen[0]["state of one"].startswith("DeadlineExceededError")
    assert "worker 1" in seen[0]["state of one"]


def test_one_worker_goes_on_where_two_stopped(seen, folder):
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    dataset = tf.data.Dataset.range(48).shuffle(48, seed=5).batch(8)
    iterator = iter(strategy.experimental_distribute_dataset(dataset))
    mirrored = tf.Variable(jnp.zeros(3))
    checkpoint = tf.train.Checkpoint(data=iterator, mirrored=mirrored, x=jnp.zeros(8))
    checkpoint.restore(tf.train.latest_checkpoint(folder / "made")).expect_partial()
    assert mirrored.numpy().tolist() == [0, 1, 2]
    assert checkpoint.x.tolist() == [4] * 8
    batches = zip(seen[0]["following"], seen[1]["following"], strict=True)
    expected = [sorted(first + second) for first, second in batches]
    assert [sorted(step.array.tolist()) for step in iterator] == expected


def test_states_that_differ_between_workers_need_as_many_workers(seen, folder):
    assert [seen[worker]["own"] for worker in (0, 1)] == ["0", "1"]

    class Own(tf.train.experimental.PythonState):
        def serialize(self):
            return ""

        def deserialize(self, string_value):
            raise AssertionError

    with pytest.raises(
        tf.errors.FailedPreconditionError,
        match=r"2 workers saved different states.*now there are 1",
    ):
        tf.train.Checkpoint(own=Own()).read(folder / "own")


def test_orbax_saves_the_position_of_every_worker_with_the_model(seen):
    for worker in (0, 1):
        assert seen[worker]["orbax"]


def test_workers_that_save_different_things_are_told_so(seen):
    for worker in (0, 1):
        paths, keys = seen[worker]["paths"], seen[worker]["keys"]
        assert paths.startswith("InvalidArgumentError: All workers save one checkpoint together")
        assert "pass the same path on all workers" in paths
        assert keys.startswith("InvalidArgumentError: Worker 0 and worker 1 save different values")


@pytest.mark.timeout(400)  # two workers start, which takes minutes on a busy machine
@pytest.mark.parametrize("victim", ["worker", "service"])
def test_what_is_killed_while_all_save_is_named_and_costs_no_checkpoint(tmp_path, victim):
    workers = []
    for worker, environ in enumerate(environments(2)):
        with (tmp_path / f"output-{worker}").open("w") as file:
            command = [sys.executable, PROGRAMS / "saving_workers.py", tmp_path / "saved"]
            workers.append(subprocess.Popen(command, env={**os.environ, **environ}, stdout=file))
    # Worker 0 writes most.
    survivors = (0, 1) if victim == "service" else (1,)
    try:
        wait_until(lambda: number_of_latest(tmp_path) >= 1, 150)
        wait_until(lambda: list((tmp_path / "saved").glob("*.orbax-checkpoint-tmp*")), 150)
        os.kill(service_of(workers) if victim == "service" else workers[0].pid, signal.SIGKILL)
        assert [workers[worker].wait(90) for worker in survivors] == [0] * len(survivors)
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    for worker in survivors:
        assert "ended worker 0 (" in (tmp_path / f"output-{worker}").read_text()
    total = tf.Variable(jnp.zeros(100_000))
    latest = tf.train.latest_checkpoint(tmp_path / "saved")
    tf.train.Checkpoint(total=total).restore(latest).expect_partial()
    assert set(total.numpy().tolist()) == {number_of_latest(tmp_path)}


def service_of(workers):
    found = [pid for worker in workers for pid in children_of(worker.pid)]
    words = {pid: Path(f"/proc/{pid}/cmdline").read_bytes() for pid in found}
    (service,) = [pid for pid in found if b"evenfeed.cluster.service" in words[pid]]
    return service


def number_of_latest(folder):
    path = tf.train.latest_checkpoint(folder / "saved")
    return 0 if path is None else int(path.rpartition("-")[2])
