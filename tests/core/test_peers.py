"""Lost workers, and how they explain JAX errors."""

import threading

import pytest

from evenfeed.core.concurrency import peers as module
from evenfeed.core.concurrency.peers import Peers
from evenfeed.core.errors import DeadlineExceededError, UnavailableError

GLOO = RuntimeError("UNKNOWN: Gloo all-reduce failed: Connection closed by peer [127.0.0.1]:5")


@pytest.fixture
def peers(monkeypatch):
    monkeypatch.setattr(module, "_NEWS_SECONDS", 0.01)
    monkeypatch.setattr(module, "_MORE_NEWS_SECONDS", 0.01)
    made = Peers()
    made.expect(["worker 0 (a:1)", "worker 1 (b:1)", "worker 2 (c:1)"])
    return made


def test_no_worker_is_lost_before_a_report(peers):
    peers.check()
    peers.check_waiting_for(1)
    assert not peers.is_broken
    assert peers.explained(GLOO) is GLOO


def test_the_first_report_about_a_lost_worker_counts(peers):
    peers.hear(1, "is lost: its process exited unexpectedly.")
    peers.hear(1, "failed: too late")
    peers.hear(2, "is lost too.")
    with pytest.raises(UnavailableError) as caught:
        peers.check()
    assert caught.value.message == "worker 1 (b:1) is lost: its process exited unexpectedly."
    assert caught.value.fix == "save what you need, end this program, and restart all workers."
    assert peers.explained(GLOO).message == caught.value.message


def test_a_worker_that_finished_stops_only_those_that_wait_for_it(peers):
    peers.hear(2, "has finished its program.", breaks=False)
    peers.check()
    peers.check_waiting_for(1)
    with pytest.raises(UnavailableError, match=r"worker 2 .* has finished its program"):
        peers.check_waiting_for(2)
    assert "worker 2" in str(peers.explained(GLOO))


def test_a_lost_worker_explains_an_error_before_a_finished_one(peers):
    peers.hear(2, "has finished its program.", breaks=False)
    peers.hear(1, "is lost.")
    assert "worker 1 (b:1) is lost." in str(peers.explained(GLOO))


def test_news_after_the_error_is_waited_for(peers, monkeypatch):
    monkeypatch.setattr(module, "_NEWS_SECONDS", 30)
    timer = threading.Timer(0.05, peers.hear, (0, "is lost."))
    timer.start()
    assert "worker 0 (a:1) is lost." in str(peers.explained(GLOO))
    timer.join()


def test_errors_that_have_nothing_to_do_with_workers_stay(peers):
    peers.hear(1, "is lost.")
    error = RuntimeError("INTERNAL: CpuCallback error: ValueError: 17 is bad")
    assert peers.explained(error) is error


def test_a_slow_collective_is_reported_if_all_workers_are_alive(peers):
    slow = RuntimeError("Gloo all-reduce failed: Timed out waiting 3000ms for recv operation")
    done = []
    peers.at_loss(lambda: done.append(1))
    told = peers.explained(slow)
    assert done
    assert type(told) is DeadlineExceededError
    assert "All workers are alive" in str(told)


def test_without_other_workers_nothing_is_explained():
    assert Peers().explained(GLOO) is GLOO
    assert Peers().name(3) == "worker 3"


def test_rescues_run_once_and_before_the_error(peers):
    done = []

    def rescue():
        done.append(str(peers.explained(GLOO)))  # may run the rescues again, from within one

    peers.at_loss(rescue)
    peers.hear(1, "is lost.")
    for _ in range(2):
        with pytest.raises(UnavailableError):
            peers.check()
    assert len(done) == 1


def test_the_cause_of_an_error_is_raised_from_it(peers):
    with pytest.raises(RuntimeError) as caught:
        peers.reraise(GLOO)
    assert caught.value is GLOO
    peers.hear(1, "is lost.")
    with pytest.raises(UnavailableError) as caught:
        peers.reraise(GLOO)
    assert caught.value.__cause__ is GLOO
