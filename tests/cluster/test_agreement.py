"""What workers tell each other; tests/strategy/test_several_workers.py does it with real processes."""

import pytest

from evenfeed.cluster import agreement
from evenfeed.cluster.agreement import StoredAgreement, topic_name
from evenfeed.core.errors import CancelledError, UnavailableError


@pytest.fixture
def store(monkeypatch):
    texts = {}
    monkeypatch.setattr(agreement, "store_text", texts.__setitem__)
    monkeypatch.setattr(agreement, "stored_text", lambda key, _: texts.get(key))
    return texts


def test_everybody_hears_what_each_said_in_the_order_of_workers(store):
    store.update({"a/0": "zero", "a/2": "two"})
    said = StoredAgreement(1, 3).exchange("a", "one", lambda: False)
    assert said == ["zero", "one", "two"]
    assert store["a/1"] == "one"


def test_nobody_waits_where_the_iterator_is_closed(store):
    with pytest.raises(CancelledError, match="iterator is closed"):
        StoredAgreement(0, 2).exchange("a", "zero", lambda: True)
    assert store == {"a/0": "zero"}


@pytest.mark.usefixtures("store")
def test_a_worker_that_does_not_answer_is_named(monkeypatch):
    monkeypatch.setattr(agreement, "_MOST_SECONDS", 0.0)
    with pytest.raises(UnavailableError, match="Worker 1 did not say within 0 seconds"):
        StoredAgreement(0, 2).exchange("a", "zero", lambda: False)


def test_datasets_have_names_of_their_own():
    assert topic_name() != topic_name()
