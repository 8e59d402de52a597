"""A worker's connection to the service: what it sends, and how it handles what it receives."""

import atexit
import json
import os
import sys
import threading

import pytest
from tests.processes import wait_until
from tests.sockets import connected

from evenfeed.cluster import gloo
from evenfeed.cluster.survival import failure_watch
from evenfeed.cluster.survival.failure_watch import Line
from evenfeed.core.concurrency.peers import Peers
from evenfeed.core.concurrency.threads import BackgroundThreads


class Opened:
    """An open connection, and the service's end of it."""

    def __init__(self, service):
        self.service = service
        self.peers = Peers()
        self.peers.expect(["worker 0", "worker 1"])
        self.cuts = []
        self.threads = BackgroundThreads()

    def tell(self, **word):
        self.service.sendall(json.dumps(word).encode() + b"\n")

    def hear(self):
        self.service.settimeout(20)
        return json.loads(self.service.makefile("rb", buffering=0).readline())

    def trouble(self):
        with pytest.raises(ConnectionError) as caught:
            self.peers.check()
        return caught.value.message


@pytest.fixture
def opened(monkeypatch):
    ((worker, service),) = connected(1)
    made = Opened(service)
    monkeypatch.setattr(gloo, "cut", made.cuts.append)
    monkeypatch.setattr(failure_watch, "background", made.threads)
    monkeypatch.setattr(atexit, "register", lambda _: None)
    monkeypatch.setattr(os, "register_at_fork", lambda **_: None)
    monkeypatch.setattr(sys, "excepthook", lambda *_: made.cuts.append("shown"))
    monkeypatch.setattr(
        failure_watch, "leave_runtime", lambda: made.cuts.append("left the service")
    )
    Line(worker, made.peers).open()
    yield made
    service.close()
    wait_until(lambda: all(each.name != "evenfeed-line" for each in threading.enumerate()))
    worker.close()


@pytest.mark.parametrize(
    ("word", "said"),
    [
        (
            {"lost": "its process exited unexpectedly"},
            "worker 1 is lost: its process exited unexpectedly.",
        ),
        ({"failed": "ValueError: 17 is bad"}, "worker 1 failed: ValueError: 17 is bad"),
    ],
)
def test_a_lost_worker_is_known_and_collectives_are_cut(opened, word, said):
    opened.tell(ports=[5, 6])
    opened.tell(worker=1, **word)
    wait_until(lambda: opened.cuts)
    assert opened.trouble() == said
    assert opened.cuts == [[5, 6]]


@pytest.mark.parametrize("line", [b"5", b"{", b'{"failed": "x"}', b'{"ports": 5, "worker": 1}'])
def test_what_the_service_does_not_say_is_passed_over(opened, line):
    opened.service.sendall(line + b"\n")
    opened.tell(worker=1, failed="x")
    wait_until(lambda: opened.cuts)
    assert opened.trouble() == "worker 1 failed: x"


def test_a_worker_that_came_to_its_end_cuts_nothing(opened):
    opened.tell(worker=1, left="")
    opened.tell(worker=0, failed="x")
    wait_until(lambda: opened.cuts)
    assert opened.trouble() == "worker 0 failed: x"
    assert opened.peers._gone[1] == "has finished its program."
    assert len(opened.cuts) == 1


def test_a_service_that_is_gone_is_worker_0s(opened):
    opened.service.close()
    wait_until(lambda: opened.peers.is_broken)
    assert opened.trouble() == "worker 0 is lost: its coordination service exited unexpectedly."


def test_an_exception_that_nobody_catches_is_told_and_shown(opened):
    sys.excepthook(ValueError, ValueError("17 is bad\n  at: x.py:1"), None)
    assert opened.hear() == {"failed": "ValueError: 17 is bad"}
    assert opened.cuts == ["shown"]


def test_the_end_of_the_program_is_told(opened):
    opened.threads.end()
    assert opened.hear() == {"left": ""}
    assert opened.cuts == ["left the service"]
    assert not opened.peers.is_broken  # a worker that stops listening has not lost the service
