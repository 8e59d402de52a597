"""Messages are deleted once all workers have read them, and not before."""

import gc

import pytest
from tests.feeding.workers import InMemory, on_all

from evenfeed.feeding.conversation import Topic

WORKERS = 3


@pytest.fixture
def memory():
    return InMemory(WORKERS)


@pytest.fixture
def topics(memory):
    return [Topic("x", memory.seen_by(worker)) for worker in range(WORKERS)]


def kept(memory):
    """Return the keys that still have messages."""
    return {k for k, said in memory.said.items() for w in said if (w, k) not in memory.forgotten}


def test_all_hear_what_each_said(topics):
    assert (
        on_all(WORKERS, lambda w: topics[w].ask(f"{w} says"))
        == [["0 says", "1 says", "2 says"]] * WORKERS
    )


def test_a_talk_of_many_rounds_keeps_the_last(topics, memory):
    def run(worker):
        talk = topics[worker].next_pass()
        for number in range(50):
            talk.exchange(f"{worker} {number}")

    on_all(WORKERS, run)
    assert kept(memory) == {"x/1/49"}


def test_passes_that_all_are_through_with_are_forgotten(topics, memory):
    for _ in range(20):
        on_all(WORKERS, lambda w: topics[w].ask("x"))
    assert kept(memory) == {"x/20/0"}


def test_a_pass_that_one_is_not_through_with_is_kept(topics, memory):
    talks = [topic.next_pass() for topic in topics]
    on_all(WORKERS, lambda w: talks[w].exchange("x"))
    for talk in talks[1:]:
        talk.close()
    for _ in range(3):
        on_all(WORKERS, lambda w: topics[w].ask("y"))
    assert "x/1/0" in kept(memory)
    talks.clear()  # the last one is not closed, only garbage-collected
    gc.collect()
    for _ in range(2):
        on_all(WORKERS, lambda w: topics[w].ask("y"))
    assert kept(memory) == {"x/6/0"}
