"""How workers register at startup: missing workers, duplicates, and different cluster specs."""

import os
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import jax
import pytest
from tests.saying import error_saying

from evenfeed.cluster import joining
from evenfeed.cluster import joining as registering
from evenfeed.cluster.joining import register
from evenfeed.cluster.launching import environments
from evenfeed.cluster.membership import Membership, Worker
from evenfeed.core.callsite import Origin
from evenfeed.core.errors import DeadlineExceededError, InvalidArgumentError, UnavailableError
from evenfeed.core.lazy_jax import backend


@pytest.fixture
def addresses():
    text = environments(3)[0]["TF_CONFIG"]
    return [part.strip('"]') for part in text.partition("[")[2].partition("]")[0].split(", ")]


def member(addresses, place):
    return Membership(tuple(Worker("worker", i, a) for i, a in enumerate(addresses)), place)


def comes(one, seconds):
    """Register a member, and return its connection."""
    return register(one, joining._facts(one), seconds).connection


def called_up(members, seconds):
    """Start the service, register each member in a thread, and return the error or result of each."""
    joining._start_service(members[0], seconds)
    with ThreadPoolExecutor(len(members)) as pool:
        futures = [pool.submit(comes, one, seconds) for one in members]
        return [future.exception(timeout=60) for future in futures]


@pytest.mark.slow
def test_all_who_came_are_told_who_did_not(addresses):
    errors = called_up([member(addresses, 0), member(addresses, 2)], seconds=1)
    for error in errors:
        assert type(error) is DeadlineExceededError
        assert (
            error.message
            == f"Some workers did not connect within 1 seconds: worker 1 ({addresses[1]})."
        )
        assert error.fix == "start them, or wait longer with EVENFEED_START_SECONDS=600."


@pytest.mark.slow
def test_one_that_came_and_left_again_is_missing(addresses):
    joining._start_service(member(addresses, 0), 2)
    one = member(addresses, 1)
    registering._connect_and_claim(
        one, joining._facts(one), time.monotonic() + 20
    ).connection.close()
    with ThreadPoolExecutor(2) as pool:
        futures = [pool.submit(comes, member(addresses, place), 2) for place in (0, 2)]
        errors = [future.exception(timeout=60) for future in futures]
    assert {type(error) for error in errors} == {DeadlineExceededError}
    assert errors[0].message.endswith(f"seconds: worker 1 ({addresses[1]}).")


@pytest.mark.slow
def test_a_service_that_dies_before_worker_0_reaches_it_is_told_at_once(addresses):
    one = member(addresses, 0)
    service = joining._start_service(one, 60)
    os.kill(service, signal.SIGKILL)
    begin = time.monotonic()
    with pytest.raises(
        UnavailableError, match=r"coordination service at .* was lost during startup"
    ):
        register(one, joining._facts(one), 60, service)
    assert time.monotonic() - begin < 10  # it would wait for 60


@pytest.mark.slow
def test_two_processes_with_one_place_are_told(addresses):
    errors = called_up([member(addresses, place) for place in (0, 1, 1)], seconds=20)
    assert {type(error) for error in errors} == {InvalidArgumentError}
    assert errors[0].message == f"Two processes claim to be worker 1 ({addresses[1]})."


@pytest.mark.slow
def test_workers_that_know_different_clusters_are_told(addresses):
    other = [*addresses[:2], "elsewhere:1"]
    members = [member(addresses, 0), member(addresses, 1), member(other, 2)]
    errors = called_up(members, seconds=20)
    assert {type(error) for error in errors} == {InvalidArgumentError}
    assert errors[1].message.startswith(
        "Workers must have the same cluster spec. It is worker 0 (127.0.0.1:"
    )
    assert errors[1].message.endswith("but different on the workers at positions 2.")


def test_what_differs_is_said_with_those_who_have_it(addresses):
    told = {"differs": "version of jax", "values": [["0.10.2", [0, 2]], ["0.9.0", [1]]]}
    zero, one, two = (str(worker) for worker in member(addresses, 0).workers)
    with pytest.raises(InvalidArgumentError) as caught:
        registering._raise_if_refused(member(addresses, 1), told, 5)
    assert caught.value.message == (
        f"Workers must have the same version of jax, but it differs: 0.10.2 on {zero}, {two}; 0.9.0 on {one}."
    )


@pytest.mark.slow
def test_a_port_that_is_taken_is_said(addresses):
    host, _, port = addresses[0].rpartition(":")
    taken = socket.create_server((host, int(port)))
    with taken, pytest.raises(UnavailableError, match=r"could not start at .*: .*in use"):
        joining._start_service(member(addresses, 0), 5)


def test_a_chief_that_is_not_there_is_said(addresses):
    with pytest.raises(DeadlineExceededError, match="Cannot connect to worker 0"):
        comes(member(addresses, 1), 0.2)


def test_a_time_that_is_no_number_is_said(monkeypatch):
    monkeypatch.setenv("EVENFEED_START_SECONDS", "soon")
    with error_saying(
        InvalidArgumentError,
        "EVENFEED_START_SECONDS must be a number, but got 'soon'.",
        fix="export EVENFEED_START_SECONDS=60.",
    ):
        joining._start_seconds()


@pytest.mark.parametrize("line", [Origin("train.py", 3), None])
def test_a_backend_that_has_started_is_too_late(addresses, monkeypatch, line):
    jax.devices()
    monkeypatch.setattr(backend, "started_by", line)
    by = "code that ran before evenfeed was used" if line is None else "train.py:3"
    with error_saying(
        RuntimeError,
        f"JAX's backend was started before this strategy, by {by}: it sees only this process's devices.",
        fix="create the MultiWorkerMirroredStrategy first, before jax.devices(), …",
    ):
        joining.join(member(addresses, 0))


def test_a_cluster_that_jax_has_joined_without_us_is_said(addresses, monkeypatch):
    monkeypatch.setattr(joining, "joined_runtime", lambda: (1, 2))
    with error_saying(
        RuntimeError,
        "This process is worker 0 of 3, but JAX has already joined a cluster as process 1 of 2.",
        fix="remove jax.distributed.initialize: …",
    ):
        joining.join(member(addresses, 0))


STARTS_BACKEND = """
import {first}, {second}
{use}
from evenfeed.core.lazy_jax import backend
print(backend.started_by)
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("first", "second", "use", "line"),
    [
        ("evenfeed", "jax", "evenfeed.constant(1)", "<string>:3"),
        ("jax", "evenfeed", "jax.devices()", "<string>:3"),
        ("evenfeed", "jax", "jax.devices()", "<string>:3"),
        ("evenfeed", "jax", "jax.numpy.ones(3)", "<string>:3"),
    ],
)
def test_the_line_that_starts_the_backend_is_known_where_it_can_be(first, second, use, line):
    program = STARTS_BACKEND.format(first=first, second=second, use=use)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout.strip() == line, done.stderr


# Starts the service, and is gone as soon as its standard input ends.
STARTS = """
import os, sys
from evenfeed.cluster import joining
from evenfeed.cluster.membership import Membership, Worker
joining._start_service(Membership((Worker("worker", 0, sys.argv[1]), Worker("worker", 1, "b:1"))), 60)
sys.stdin.read()
os._exit(0)
"""


def connect_until_refused(address: str) -> None:
    """Connect again and again for ten seconds: the service ends after it has told the others."""
    host, _, port = address.rpartition(":")
    for _ in range(100):
        socket.create_connection((host, int(port)), timeout=5).close()
        time.sleep(0.1)


@pytest.mark.slow
def test_a_worker_0_that_is_gone_is_said_at_once_and_leaves_no_service(addresses):
    command = [sys.executable, "-c", STARTS, addresses[0]]
    one, end = member(addresses, 1), time.monotonic() + 60
    with subprocess.Popen(command, stdin=subprocess.PIPE) as worker_0:
        connection = registering._connect_and_claim(one, joining._facts(one), end).connection
        worker_0.kill()
    with (
        connection,
        pytest.raises(UnavailableError, match=r"worker 0 \(.*\) exited during startup"),
    ):
        registering._raise_if_refused(one, registering._read_outcome(one, connection, end), 60)
    with pytest.raises(ConnectionRefusedError):
        connect_until_refused(addresses[0])


@pytest.mark.slow
def test_a_worker_0_that_is_gone_before_the_service_is_ready_leaves_no_service(addresses):
    command = [sys.executable, "-c", STARTS, addresses[0]]
    subprocess.run(command, stdin=subprocess.DEVNULL, check=True, timeout=60)
    with pytest.raises(ConnectionRefusedError):
        connect_until_refused(addresses[0])
