"""Texts that workers exchange; tests/strategy/test_several_workers.py does it with real processes."""

import logging

import pytest

from evenfeed.cluster import host_exchange
from evenfeed.cluster.host_exchange import StoredAgreement, topic_name
from evenfeed.core.concurrency.peers import Peers
from evenfeed.core.errors import CancelledError, DeadlineExceededError, UnavailableError


class Stored:
    """A text that takes a while to be stored."""

    def __init__(self):
        self._looks = iter([False, True])

    def wait(self, seconds):
        return next(self._looks)


@pytest.fixture
def store(monkeypatch):
    texts = {}
    monkeypatch.setattr(host_exchange, "store_text", lambda *text: texts.update([text]) or Stored())
    monkeypatch.setattr(host_exchange, "forget_text", texts.__delitem__)
    monkeypatch.setattr(host_exchange, "stored_text", lambda key, _: texts.get(key))
    return texts


@pytest.fixture
def peers(monkeypatch):
    made = Peers()
    made.expect(["worker 0 (a:1)", "worker 1 (b:1)", "worker 2 (c:1)"])
    monkeypatch.setattr(host_exchange, "peers", made)
    return made


def test_everybody_hears_what_each_said_in_the_order_of_workers(store):
    store.update({"a/0": "zero", "a/2": "two"})
    said = StoredAgreement(1, 3).exchange("a", "one", lambda: False)
    assert said == ["zero", "one", "two"]
    assert store["a/1"] == "one"


def test_what_is_forgotten_is_ones_own(store):
    store.update({"a/0": "zero", "a/1": "one"})
    StoredAgreement(1, 2).forget("a")
    assert store == {"a/0": "zero"}


def test_nobody_waits_where_the_iterator_is_closed(store):
    with pytest.raises(CancelledError, match="iterator is closed"):
        StoredAgreement(0, 2).exchange("a", "zero", lambda: True)
    assert store == {"a/0": "zero"}


@pytest.mark.usefixtures("store", "peers")
def test_a_worker_that_is_there_and_does_not_answer_is_named():
    with pytest.raises(DeadlineExceededError) as caught:
        StoredAgreement(0, 2, patience=0.0).exchange("a", "zero", lambda: False)
    assert caught.value.message == (
        "worker 1 (b:1) is running, but did not reach the point where all workers exchange "
        "information within 0 seconds."
    )


@pytest.mark.usefixtures("store", "peers")
def test_a_worker_that_is_silent_is_named_early_and_once(monkeypatch, caplog):
    monkeypatch.setattr(host_exchange, "_WARN_SECONDS", 0.0)
    looks = iter([False] * 5 + [True])
    with caplog.at_level(logging.WARNING, "evenfeed"), pytest.raises(CancelledError):
        StoredAgreement(0, 2, patience=60).exchange("a", "zero", lambda: next(looks))
    (record,) = caplog.records
    assert record.getMessage().startswith(
        "Still waiting for worker 1 (b:1) after 0 seconds: it has not reached the point"
    )


@pytest.mark.usefixtures("store")
def test_nobody_waits_for_a_worker_that_is_lost(peers):
    peers.hear(1, "failed: ValueError: 17")
    with pytest.raises(UnavailableError, match=r"worker 1 \(b:1\) failed: ValueError: 17"):
        StoredAgreement(0, 3).exchange("a", "zero", lambda: False)


def test_what_a_worker_said_before_its_end_is_still_heard(store, peers):
    peers.hear(1, "has finished its program.", breaks=False)
    store["a/1"] = "one"
    assert StoredAgreement(0, 2).exchange("a", "zero", lambda: False) == ["zero", "one"]
    with pytest.raises(UnavailableError, match=r"worker 1 .* has finished its program"):
        StoredAgreement(0, 2).exchange("b", "zero", lambda: False)


@pytest.mark.usefixtures("store")
def test_a_service_that_is_gone_is_told_by_who_is_lost(monkeypatch, peers):
    def gone(key, text):
        raise UnavailableError("The coordination service of the workers does not answer.")

    monkeypatch.setattr(host_exchange, "store_text", gone)
    peers.hear(0, "is lost.")
    with pytest.raises(UnavailableError, match=r"worker 0 \(a:1\) is lost"):
        StoredAgreement(1, 2).exchange("a", "one", lambda: False)


def test_datasets_have_names_of_their_own():
    assert topic_name() != topic_name()
