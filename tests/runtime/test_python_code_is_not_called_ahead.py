"""User Python code runs only for elements that are asked for, as in TensorFlow."""

import threading

import numpy as np
import pytest

import evenfeed as tf
from evenfeed.data import Dataset

pytestmark = pytest.mark.timeout(60)

NUMBER = tf.TensorSpec([], tf.int64)
COUNT = 100


class Called:
    """Returns its argument and counts calls; at one element it hangs until released."""

    def __init__(self, hangs_at=None):
        self.times = 0
        self.hangs_at = hangs_at
        self.hangs, self.let_go = threading.Event(), threading.Event()

    def __call__(self, x):
        self.times += 1
        if self.times - 1 == self.hangs_at:
            self.hangs.set()
            self.let_go.wait(30)
        return int(x)


def generated(called):
    def numbers():
        for x in range(COUNT):
            yield called(x)

    return Dataset.from_generator(numbers, output_signature=NUMBER)


def mapped(called):
    return Dataset.range(COUNT).map(called, output_signature=NUMBER)


PLANS = {
    "map": mapped,
    "generator": generated,
    "map behind batch": lambda called: mapped(called).batch(1),
    "padded_batch": lambda called: mapped(called).padded_batch(1),
    "traced map of a map": lambda called: mapped(called).map(lambda x: x + 1),
    "traced map of a generator": lambda called: generated(called).map(lambda x: x + 1),
    "filter": lambda called: Dataset.range(COUNT).filter(lambda x: called(x) >= 0),
    "take_while": lambda called: Dataset.range(COUNT).take_while(lambda x: called(x) >= 0),
    "scan": lambda called: Dataset.range(COUNT).scan(
        np.int64(0), lambda s, x: (s, np.int64(called(x)))
    ),
    "flat_map": lambda called: Dataset.range(2).flat_map(lambda _: mapped(called)),
    "interleave": lambda called: Dataset.range(1).interleave(lambda _: mapped(called)),
    "zip": lambda called: Dataset.zip(mapped(called), Dataset.range(COUNT)),
    "concatenate": lambda called: mapped(called).concatenate(Dataset.range(3)),
    "repeat": lambda called: mapped(called).repeat(2),
    "enumerate, take": lambda called: mapped(called).enumerate().take(90),
    "shard": lambda called: mapped(called).shard(1, 0),
    "ignore_errors": lambda called: mapped(called).ignore_errors(),
    "first pass of a cache": lambda called: mapped(called).cache(),
    "py_function": lambda called: Dataset.range(COUNT).map(
        lambda x: tf.numpy_function(lambda y: np.int64(called(y)), [x], tf.int64)
    ),
}


@pytest.mark.parametrize("make", PLANS.values(), ids=PLANS.keys())
def test_a_function_is_called_once_for_each_element_that_was_asked_for(make):
    called = Called()
    iterator = iter(make(called))
    for _ in range(70):
        next(iterator)
    assert called.times == 70


def arrived(iterator, called):
    """Read in a thread until the function hangs; return how many elements arrived."""
    found = []

    def read():
        for x in iterator:
            found.append(x)
            if len(found) == 60:
                return

    reader = threading.Thread(target=read)
    reader.start()
    assert called.hangs.wait(30)
    reader.join(0.3)  # finished elements arrive at once
    count = len(found)
    called.let_go.set()
    reader.join()
    return count


@pytest.mark.parametrize("make", PLANS.values(), ids=PLANS.keys())
def test_elements_that_are_ready_come_before_one_that_hangs(make):
    called = Called(hangs_at=45)
    assert arrived(iter(make(called)), called) == 45


READ_AHEAD = {
    "prefetch": lambda called: iter(mapped(called).prefetch(4)),
    "prefetch of batches": lambda called: iter(mapped(called).batch(1).prefetch(tf.data.AUTOTUNE)),
    "map in threads": lambda called: iter(
        Dataset.range(COUNT).map(called, 2, output_signature=NUMBER)
    ),
    "distributed": lambda called: iter(
        tf.distribute.MirroredStrategy(["CPU:0"]).experimental_distribute_dataset(
            mapped(called).batch(1)
        )
    ),
}


@pytest.mark.parametrize("make", READ_AHEAD.values(), ids=READ_AHEAD.keys())
def test_elements_that_were_read_ahead_come_before_one_that_hangs(make):
    called = Called(hangs_at=45)
    assert arrived(make(called), called) >= 45


def test_a_complete_cache_is_read_many_at_a_time():
    cached = mapped(Called()).cache()
    expected = [int(x) for x in cached]
    iterator = iter(cached)
    assert [int(x) for x in iterator] == expected
    assert iterator._pace.ask > 1
