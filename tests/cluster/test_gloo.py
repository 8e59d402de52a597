"""Finding sockets by port: which ones are cut, and which one Gloo opened."""

import os

import pytest
from tests.sockets import connected

from evenfeed.cluster import gloo
from evenfeed.core.lazy import socket


def test_both_ends_of_a_connection_to_a_port_are_cut_and_no_others():
    ((one, other),), ((free, far),) = connected(1), connected(1)
    ports = [other.getsockname()[1]]
    assert gloo.cut(ports) == 2
    assert (one.recv(1), other.recv(1)) == (b"", b"")
    free.sendall(b"x")
    assert far.recv(1) == b"x"
    for each in (one, other, free, far):
        each.close()


@pytest.mark.parametrize(
    ("flags", "seconds", "expected"),
    [
        (None, 60, "--xla_cpu_collective_timeout_seconds=60"),
        ("--xla_x=1", 0.2, "--xla_x=1 --xla_cpu_collective_timeout_seconds=1"),
    ],
)
def test_the_time_for_collectives_is_told_to_xla(monkeypatch, flags, seconds, expected):
    monkeypatch.setenv("XLA_FLAGS", flags or "")
    gloo.limit(seconds)
    assert os.environ["XLA_FLAGS"] == expected


def test_what_listens_stays_open():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        assert port in gloo._listening_ports()
        assert gloo.cut([port]) == 0
        socket.create_connection(("127.0.0.1", port)).close()


def test_looking_leaves_no_file_open():
    before = sorted(os.listdir(gloo._FOLDER))
    gloo._listening_ports()
    gloo.cut([1])
    assert sorted(os.listdir(gloo._FOLDER)) == before


def test_gloo_listens_where_the_worker_is_and_says_its_port(monkeypatch):
    made, told, hosts = [], [], []

    def collectives(host):
        hosts.append(host)
        opened.append(socket.create_server(("127.0.0.1", 0)))
        return "gloo"

    opened = []
    monkeypatch.setattr(gloo, "set_cpu_collectives", made.append)
    monkeypatch.setattr(gloo, "gloo_collectives", collectives)
    for host in ("127.0.0.1", "203.0.113.7"):
        gloo.arrange(host, told.append)
        assert made.pop()() == "gloo"
    assert hosts == ["127.0.0.1", None]  # the second is not an address of this machine
    assert told == [one.getsockname()[1] for one in opened]
    for one in opened:
        one.close()
