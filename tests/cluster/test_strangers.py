"""Strangers that connect to the service's port: they are rejected, and do not disturb the workers."""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from tests.processes import wait_until

from evenfeed.cluster import joining
from evenfeed.cluster import joining as registering
from evenfeed.cluster.handshake import TOKEN, parse_greeting, proof, read_line
from evenfeed.cluster.joining import register
from evenfeed.cluster.launching import environments
from evenfeed.cluster.membership import Membership, Worker
from evenfeed.core.errors import InvalidArgumentError, UnauthenticatedError

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

LONG = 1 << 20
PLAUSIBLE = {"cluster": ["a"], "version of evenfeed": "1"}

SENT = {
    "nothing": b"",
    "a number": b"5\n",
    "a list": b"[]\n",
    "facts that are a number": b'{"place": 1, "facts": 5}\n',
    "no facts": b'{"place": 1, "facts": {}}\n',
    "deep lists": b"[" * 60_000 + b"\n",
    "deep dicts": b'{"a":' * 60_000 + b"\n",
    "a place outside": json.dumps({"place": 7, "facts": PLAUSIBLE, "nonce": "n"}).encode() + b"\n",
    "a place below": json.dumps({"place": -1, "facts": PLAUSIBLE, "nonce": "n"}).encode() + b"\n",
    "a place that is text": b'{"place": "1", "facts": {}, "nonce": "n"}\n',
    "a proxy": b'{"proxy": 1, "proof": "x"}\n',
    "a proxy of nobody": b'{"proxy": [], "proof": null}\n',
    "no UTF-8": b"\xff\xfe\x00\n",
    "a browser": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
    "no end": b"x" * LONG,
    "half a line": b'{"place": 1, "fac',
}


@pytest.fixture
def members(monkeypatch):
    """Return the memberships of three workers. Real workers would each have the token in their own environment."""
    monkeypatch.delenv(TOKEN, raising=False)
    config = json.loads(environments(3)[0]["TF_CONFIG"])
    workers = tuple(Worker("worker", i, a) for i, a in enumerate(config["cluster"]["worker"]))
    return [Membership(workers, place) for place in range(3)]


def comes(member, seconds=60):
    return register(member, joining._facts(member), seconds)


def where(members):
    host, _, port = members[0].own.address.rpartition(":")
    return host, int(port)


def stranger(members, sent=b""):
    one = socket.create_connection(where(members), timeout=20)
    with suppress(OSError):  # it may have been disconnected already
        one.sendall(sent)
    return one


@contextmanager
def let_in(members):
    """Register all workers at the same time, and keep them connected."""
    with ThreadPoolExecutor(len(members)) as pool:
        came = list(pool.map(comes, members))
    try:
        yield came
    finally:
        for one in came:
            one.connection.close()


def is_turned_away(one):
    """Wait until the service has closed a connection."""
    one.settimeout(20)
    with one, suppress(ConnectionResetError):
        while one.recv(1 << 16):
            pass
    return True


def test_whatever_strangers_send_the_workers_meet(members):
    joining._start_service(members[0], 60)
    strangers = [stranger(members, sent) for sent in SENT.values()]
    with let_in(members):
        later = [stranger(members, sent) for sent in SENT.values()]
        assert all(map(is_turned_away, strangers + later))


def test_three_hundred_strangers_that_say_nothing_or_little_keep_nobody_waiting(members):
    joining._start_service(members[0], 60)
    silent = [stranger(members) for _ in range(150)]
    slow = [stranger(members) for _ in range(150)]
    stop = threading.Event()

    def dribble():
        while not stop.wait(0.1):
            for one in slow:
                with suppress(OSError):
                    one.send(b"[")

    thread = threading.Thread(target=dribble)
    thread.start()
    try:
        with let_in(members):
            pass
    finally:
        stop.set()
        thread.join()
        for one in silent + slow:
            one.close()


def test_a_stranger_cannot_take_a_workers_place(members):
    joining._start_service(members[0], 60)
    first = registering._connect_and_claim(
        members[1], joining._facts(members[1]), time.monotonic() + 60
    )
    other = {**joining._facts(members[1]), "setting jax_enable_x64": "stranger"}
    with pytest.raises(
        InvalidArgumentError, match="Another process is already registered as worker 1"
    ):
        register(members[1], other, 60)
    with let_in([members[0], members[2]]), first.connection:
        assert json.loads(read_line(first.connection, time.monotonic() + 20)) == {"go": True}


def test_one_who_comes_after_the_others_began_is_told(members):
    joining._start_service(members[0], 60)
    with let_in(members), pytest.raises(InvalidArgumentError, match="all workers have started"):
        comes(members[1])


def test_one_who_knows_a_larger_cluster_is_told_alone(members):
    joining._start_service(members[0], 60)
    larger = Membership((*members[0].workers, Worker("worker", 3, "127.0.0.1:1")), 3)
    with pytest.raises(InvalidArgumentError, match=r"worker 3 of 4, but .* expects 3 workers"):
        comes(larger)
    with let_in(members):
        pass


# --- the token --------------------------------------------------------------------------------


def test_workers_with_the_token_meet_and_those_without_are_told(members, monkeypatch):
    monkeypatch.setenv(TOKEN, "right")
    joining._start_service(members[0], 60)
    monkeypatch.setenv(TOKEN, "wrong")
    with pytest.raises(
        UnauthenticatedError,
        match="This process has a different EVENFEED_CLUSTER_TOKEN than worker 0",
    ):
        comes(members[1])
    monkeypatch.delenv(TOKEN)
    with pytest.raises(UnauthenticatedError, match=r"is set on worker 0 \(.*\), but not here"):
        comes(members[1])
    monkeypatch.setenv(TOKEN, "right")
    with let_in(members):
        pass


def test_those_who_wait_hear_where_processes_without_the_token_came_from(members, monkeypatch):
    monkeypatch.setenv(TOKEN, "right")
    joining._start_service(members[0], 3)
    monkeypatch.setenv(TOKEN, "wrong")
    with pytest.raises(UnauthenticatedError):
        comes(members[1])
    monkeypatch.setenv(TOKEN, "right")
    with pytest.raises(
        TimeoutError, match=f"Processes with a different {TOKEN} connected from 127.0.0"
    ):
        comes(members[0], 3)


def test_a_service_without_the_token_is_not_trusted(members, monkeypatch):
    joining._start_service(members[0], 3)
    monkeypatch.setenv(TOKEN, "right")
    with pytest.raises(UnauthenticatedError, match=r"is set here, but not on worker 0"):
        comes(members[1])


def test_a_service_that_only_pretends_to_know_the_token_is_not_trusted(members, monkeypatch):
    monkeypatch.setenv(TOKEN, "right")

    def pretend(server):
        one, _ = server.accept()
        with one:
            one.sendall(b"evenfeed 1 challenge token\n")
            read_line(one, time.monotonic() + 20)
            one.sendall(json.dumps({"welcome": True, "proof": proof(b"", "x")}).encode() + b"\n")
            one.recv(1)

    with socket.create_server(where(members)) as server:
        thread = threading.Thread(target=pretend, args=(server,))
        thread.start()
        with pytest.raises(
            UnauthenticatedError, match="This process has a different EVENFEED_CLUSTER_TOKEN than"
        ):
            comes(members[1])
        thread.join()


def test_the_token_is_never_sent(members, monkeypatch):
    monkeypatch.setenv(TOKEN, "very-secret")
    heard = []
    with socket.create_server(where(members)) as server:

        def listen():
            one, _ = server.accept()
            with one:
                one.sendall(b"evenfeed 1 challenge token\n")
                heard.append(read_line(one, time.monotonic() + 20))
                one.sendall(b'{"refused": true}\n')

        thread = threading.Thread(target=listen)
        thread.start()
        with pytest.raises(UnauthenticatedError):
            comes(members[1])
        thread.join()
    assert b"very-secret" not in heard[0]


# --- the running job --------------------------------------------------------------------------

JOINS = """
import sys
from evenfeed.cluster.jax_private import runtime_client
client = runtime_client(sys.argv[1], 1, 3)
client.connect()
print("joined", flush=True)
"""


def _joins(address):
    done = subprocess.run(
        [sys.executable, "-c", JOINS, address],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
    )
    return "joined" in done.stdout


def _replayed(members, came):
    """Claim to be a coordination proxy, with a proof for another connection."""
    one = stranger(members)
    parse_greeting(read_line(one, time.monotonic() + 20))
    old = proof(came[1].key, "proxy", "another challenge")
    one.sendall(json.dumps({"proxy": 1, "proof": old}).encode() + b"\n")
    return one


def test_a_foreign_client_of_jaxs_cannot_join(members):
    joining._start_service(members[0], 60)
    with let_in(members) as came:
        assert is_turned_away(_replayed(members, came))
        assert not _joins(members[0].own.address)
        came[0].connection.sendall(b'{"failed": "still served"}\n')
        heard = read_line(came[1].connection, time.monotonic() + 20)
        assert json.loads(heard) == {"worker": 0, "failed": "still served"}


def _listening(pids):
    """Return the addresses on which some processes listen, from /proc."""
    inodes = set()
    for pid in pids:
        for file in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(OSError):
                inodes.add(os.readlink(file).removeprefix("socket:[").removesuffix("]"))
    lines = [
        line.split()
        for name in ("tcp", "tcp6")
        for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]
    ]
    return {
        words[1].partition(":")[0] for words in lines if words[3] == "0A" and words[9] in inodes
    }


def _services(port):
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            words = path.read_bytes().split(b"\0")
            if b"evenfeed.cluster.service" in words and str(port).encode() in words:
                found.append(path.parent.name)
    return found


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="no /proc")
def test_nothing_listens_but_at_the_clusters_own_address(members):
    port = where(members)[1]
    joining._start_service(members[0], 60)
    with let_in(members):
        (service,) = _services(port)
        assert _listening([service]) == {"0100007F"}
    wait_until(lambda: not _services(port), 20)


@pytest.mark.parametrize(("token", "advice"), [("x", "Only workers that"), ("", "Set EVENFEED_")])
def test_a_service_that_must_listen_everywhere_says_so_in_one_line(
    members, monkeypatch, caplog, token, advice
):
    monkeypatch.setenv(TOKEN, token)
    elsewhere = Worker("worker", 0, f"192.0.2.1:{where(members)[1]}")
    joining._start_service(Membership((elsewhere, members[0].workers[1]), 0), 0)
    (line,) = caplog.messages
    assert "listens on all network interfaces, because 192.0.2.1" in line
    assert advice in line
