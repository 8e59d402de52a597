"""What is known of workers that are gone, and what it makes of errors of JAX's."""

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


def test_nobody_is_lost_before_it_is_heard(peers):
    peers.check()
    peers.check_waiting_for(1)
    assert not peers.is_broken
    assert peers.explained(GLOO) is GLOO


def test_a_lost_worker_is_named_by_the_first_word_about_it(peers):
    peers.hear(1, "is lost: its process exited unexpectedly.")
    peers.hear(1, "failed: too late")
    peers.hear(2, "is lost too.")
    with pytest.raises(UnavailableError) as caught:
        peers.check()
    assert caught.value.message == "worker 1 (b:1) is lost: its process exited unexpectedly."
    assert caught.value.fix == "save what you need, end this program, and restart all workers."
    assert peers.explained(GLOO).message == caught.value.message


def test_one_that_came_to_its_end_stops_only_those_that_wait_for_it(peers):
    peers.hear(2, "has finished its program.", breaks=False)
    peers.check()
    peers.check_waiting_for(1)
    with pytest.raises(UnavailableError, match=r"worker 2 .* has finished its program"):
        peers.check_waiting_for(2)
    assert "worker 2" in str(peers.explained(GLOO))


def test_a_loss_explains_more_than_an_end(peers):
    peers.hear(2, "has finished its program.", breaks=False)
    peers.hear(1, "is lost.")
    assert "worker 1 (b:1) is lost." in str(peers.explained(GLOO))


def test_news_that_come_after_the_error_are_waited_for(peers, monkeypatch):
    monkeypatch.setattr(module, "_NEWS_SECONDS", 30)
    timer = threading.Timer(0.05, peers.hear, (0, "is lost."))
    timer.start()
    assert "worker 0 (a:1) is lost." in str(peers.explained(GLOO))
    timer.join()


def test_errors_that_have_nothing_to_do_with_workers_stay(peers):
    peers.hear(1, "is lost.")
    error = RuntimeError("INTERNAL: CpuCallback error: ValueError: 17 is bad")
    assert peers.explained(error) is error


def test_a_collective_that_is_too_slow_is_said_where_all_are_there(peers):
    slow = RuntimeError("Gloo all-reduce failed: Timed out waiting 3000ms for recv operation")
    done = []
    peers.at_loss(lambda: done.append(1))
    told = peers.explained(slow)
    assert done
    assert type(told) is DeadlineExceededError
    assert "All workers are alive" in str(told)


def test_alone_nothing_is_explained():
    assert Peers().explained(GLOO) is GLOO
    assert Peers().name(3) == "worker 3"


def test_what_is_to_be_done_at_a_loss_is_done_once_and_first(peers):
    done = []

    def rescue():
        done.append(str(peers.explained(GLOO)))  # comes here again, while it is done

    peers.at_loss(rescue)
    peers.hear(1, "is lost.")
    for _ in range(2):
        with pytest.raises(UnavailableError):
            peers.check()
    assert len(done) == 1


def test_what_is_behind_an_error_is_raised_from_it(peers):
    with pytest.raises(RuntimeError) as caught:
        peers.reraise(GLOO)
    assert caught.value is GLOO
    peers.hear(1, "is lost.")
    with pytest.raises(UnavailableError) as caught:
        peers.reraise(GLOO)
    assert caught.value.__cause__ is GLOO
