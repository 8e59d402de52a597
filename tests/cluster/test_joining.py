"""How workers meet at the start: who is missing, who is there twice, and who knows another cluster."""

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import jax
import pytest
from tests.saying import error_saying

from evenfeed.cluster import joining
from evenfeed.cluster.launching import environments
from evenfeed.cluster.membership import Membership, Worker
from evenfeed.core.errors import DeadlineExceededError, InvalidArgumentError, UnavailableError


@pytest.fixture
def addresses():
    text = environments(3)[0]["TF_CONFIG"]
    return [part.strip('"]') for part in text.partition("[")[2].partition("]")[0].split(", ")]


def member(addresses, place):
    return Membership(tuple(Worker("worker", i, a) for i, a in enumerate(addresses)), place)


def called_up(members, seconds):
    """Start the service, let each member answer in a thread, and return what becomes of it."""
    joining._start_service(members[0], seconds)
    with ThreadPoolExecutor(len(members)) as pool:
        futures = [pool.submit(joining._answer, one, seconds) for one in members]
        return [future.exception(timeout=60) for future in futures]


@pytest.mark.slow
def test_all_who_came_are_told_who_did_not(addresses):
    errors = called_up([member(addresses, 0), member(addresses, 2)], seconds=1)
    for error in errors:
        assert type(error) is DeadlineExceededError
        assert error.message == f"Workers did not come within 1 seconds: worker 1 ({addresses[1]})."
        assert error.fix == "start them, or wait longer with EVENFEED_START_SECONDS=600."


@pytest.mark.slow
def test_two_processes_with_one_place_are_told(addresses):
    errors = called_up([member(addresses, place) for place in (0, 1, 1)], seconds=20)
    assert {type(error) for error in errors} == {InvalidArgumentError}
    assert errors[0].message == f"Two processes say that they are worker 1 ({addresses[1]})."


@pytest.mark.slow
def test_workers_that_know_different_clusters_are_told(addresses):
    other = [*addresses[:2], "elsewhere:1"]
    members = [member(addresses, 0), member(addresses, 1), member(other, 2)]
    errors = called_up(members, seconds=20)
    assert {type(error) for error in errors} == {InvalidArgumentError}
    assert errors[1].message.startswith("The workers know different clusters: worker 0 (127.0.0.1:")
    assert errors[1].message.endswith("and not what those in the places 2 know.")


@pytest.mark.slow
def test_a_port_that_is_taken_is_said(addresses):
    host, _, port = addresses[0].rpartition(":")
    taken = joining.socket.create_server((host, int(port)))
    with taken, pytest.raises(UnavailableError, match=r"could not start at .*: .*in use"):
        joining._start_service(member(addresses, 0), 5)


def test_a_chief_that_is_not_there_is_said(addresses):
    with pytest.raises(DeadlineExceededError, match="where the workers meet, cannot be reached"):
        joining._answer(member(addresses, 1), 0.2)


def test_a_time_that_is_no_number_is_said(monkeypatch):
    monkeypatch.setenv("EVENFEED_START_SECONDS", "soon")
    with error_saying(
        InvalidArgumentError,
        "EVENFEED_START_SECONDS is no number: 'soon'.",
        fix="export EVENFEED_START_SECONDS=60.",
    ):
        joining._seconds()


def test_a_backend_that_has_started_is_too_late(addresses):
    jax.devices()
    with error_saying(
        RuntimeError,
        "JAX has started its backend before this strategy: it sees the devices of this process alone.",
        fix="make the MultiWorkerMirroredStrategy first of all, before jax.devices(), …",
    ):
        joining.join(member(addresses, 0))


STARTS = """
import sys
from evenfeed.cluster import joining
from evenfeed.cluster.membership import Membership, Worker
joining._start_service(Membership((Worker("worker", 0, sys.argv[1]), Worker("worker", 1, "b:1"))), 60)
"""


@pytest.mark.slow
def test_a_worker_0_that_is_gone_is_said_at_once_and_leaves_no_service(addresses):
    subprocess.run([sys.executable, "-c", STARTS, addresses[0]], check=True, timeout=60)
    with pytest.raises(DeadlineExceededError, match=r"did not come within .*: worker 0 \("):
        joining._answer(member(addresses, 1), 30)
    host, _, port = addresses[0].rpartition(":")
    with pytest.raises(ConnectionRefusedError):
        joining.socket.create_connection((host, int(port)), timeout=5)


LEAVES = """
import os, sys, time
import evenfeed as tf
strategy = tf.distribute.MultiWorkerMirroredStrategy()
total = strategy.reduce("SUM", tf.constant(1.0), axis=None)
if strategy.cluster_resolver.task_id == 0:
    os._exit(0)
try:
    strategy.reduce("SUM", tf.constant(1.0), axis=None)
except Exception as error:
    print("lost", type(error).__name__)
time.sleep(5)
print("saved", float(total))
"""


@pytest.mark.slow
def test_the_others_work_on_when_worker_0_leaves(tmp_path):
    path = tmp_path / "leaves.py"
    path.write_text(LEAVES)
    told = environments(2, replicas=1)
    started = [
        subprocess.Popen(
            [sys.executable, str(path)],
            env={**os.environ, **one},
            stdout=subprocess.PIPE,
            text=True,
        )
        for one in told
    ]
    said = [process.communicate(timeout=60)[0] for process in started]
    assert [process.returncode for process in started] == [0, 0]
    assert "lost " in said[1]
    assert "saved 2.0" in said[1]
