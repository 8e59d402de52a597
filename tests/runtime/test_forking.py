"""A fork that goes on with the parent's iterator: an error that says what to do, in place of a wait without end."""

import os
import pickle
import signal
import subprocess
import sys
import warnings

import numpy as np
import pytest

import evenfeed as tf
from evenfeed.data import Dataset
from evenfeed.errors import FailedPreconditionError

pytestmark = pytest.mark.timeout(60)

NUMBER = tf.TensorSpec([], tf.int64)


def itself(x):
    return int(x)


def mapped():
    return Dataset.range(9).map(itself, output_signature=NUMBER)


def distributed():
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    return strategy.experimental_distribute_dataset(Dataset.range(9).batch(1))


def old_iterator():
    strategy = tf.compat.v1.distribute.MirroredStrategy(["CPU:0"])
    return strategy.make_dataset_iterator(Dataset.range(9).batch(1))


DATASETS = {
    "range": lambda: Dataset.range(9),
    "map": mapped,
    "prefetch": lambda: mapped().prefetch(2),
    "map in threads": lambda: Dataset.range(9).map(itself, 2, output_signature=NUMBER),
    "generator": lambda: Dataset.from_generator(lambda: range(9), output_signature=NUMBER),
    "shuffle of a prefetch": lambda: (
        mapped().prefetch(2).shuffle(3, seed=1, reshuffle_each_iteration=False)
    ),
    "cache": lambda: mapped().cache(),
    "what was begun to learn its spec": lambda: mapped().prefetch(2).map(lambda x: (int(x),)),
}

ITERATORS = {name: lambda make=make: iter(make()) for name, make in DATASETS.items()} | {
    "as_numpy_iterator": lambda: mapped().prefetch(1).as_numpy_iterator(),
    "distributed": lambda: iter(distributed()),
    "as_array_iterator": lambda: distributed().as_array_iterator(),
    "TensorFlow 1": old_iterator,
}


def in_fork(call):
    """Return what a function returns in a fork of this process, as text."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of forks in a process that has threads
        child = os.fork()
    if child == 0:
        signal.alarm(20)  # a wait without end must end
        try:
            found = str(call())
        except BaseException as error:  # noqa: BLE001 - the parent looks at it
            found = f"{type(error).__name__}: {error}"
        os.write(writing, found.encode())
        os._exit(0)
    os.close(writing)
    os.waitpid(child, 0)
    with os.fdopen(reading, "rb") as file:
        return file.read().decode()


def raised(call):
    try:
        call()
    except FailedPreconditionError as error:
        return str(error)
    raise AssertionError("there was no error")


@pytest.mark.parametrize("make", ITERATORS.values(), ids=ITERATORS.keys())
def test_a_fork_that_goes_on_with_an_iterator_is_told_to_spawn(make):
    iterator = make()
    next(iterator)
    expected = f"Process {os.getpid()} created the iterator, but its fork"
    for ask in (iterator.__next__, iterator.get_next, iterator.get_next_as_optional):
        told = in_fork(lambda ask=ask: raised(ask))
        assert told.startswith(expected)
        assert "get_context('spawn')" in told
    assert next(iterator) is not None  # the parent's goes on


STATEFUL = [name for name in ITERATORS if name not in ("TensorFlow 1", "generator")]


@pytest.mark.parametrize("name", STATEFUL)
def test_a_fork_cannot_ask_for_the_state_and_may_close(name):
    iterator = ITERATORS[name]()
    next(iterator)
    state = iterator.get_state()
    assert "spawn" in in_fork(lambda: raised(iterator.get_state))
    assert "spawn" in in_fork(lambda: raised(lambda: iterator.set_state(state)))
    assert in_fork(iterator.close) == "None"


@pytest.mark.parametrize("make", DATASETS.values(), ids=DATASETS.keys())
def test_a_fork_may_begin_an_iterator_of_its_own(make):
    dataset = make()
    first = next(iter(dataset))
    again = make()
    _ = again.element_spec
    assert in_fork(lambda: next(iter(dataset))) == str(first)
    assert in_fork(lambda: next(iter(again))) == str(first)


def wave(x):
    return tf.sin(tf.cast(x, tf.float32))


WIDE = np.ones((700, 700), np.float32)


def running():
    """Return what runs a program of JAX. Each has run in this process."""
    strategy = tf.distribute.MirroredStrategy(["CPU:0"])
    dataset = Dataset.range(50_000).map(wave).batch(10_000)
    wide = tf.constant(WIDE)
    function = tf.function(lambda x: tf.sin(x) @ x)
    step = tf.function(lambda x: strategy.run(lambda y: tf.sin(y) @ y, args=(x,)))
    variable = tf.Variable(WIDE)
    calls = {
        "a compiled map": lambda: list(dataset),
        "a new map": lambda: list(Dataset.range(9).map(lambda x: tf.cos(tf.cast(x, tf.float32)))),
        "a function of tensors": lambda: tf.sin(wide),
        "a tensor": lambda: tf.constant(WIDE) + 1,
        "tf.function": lambda: function(wide),
        "a step": lambda: step(wide),
        "a variable": lambda: variable.assign_add(WIDE),
        "a distributed dataset": lambda: list(
            strategy.experimental_distribute_dataset(Dataset.from_tensors(WIDE))
        ),
    }
    for call in calls.values():
        call()
    return calls


def test_a_program_of_jax_in_a_fork_is_an_error():
    for name, call in running().items():
        told = in_fork(lambda call=call: raised(call))
        assert "a fork of process" in told, (name, told)
        assert "get_context('spawn')" in told, (name, told)


IN_FORK = {
    "plain arithmetic": (lambda: Dataset.range(4).map(lambda x: x * 3 + 1), "[1, 4, 7, 10]"),
    "a filter": (lambda: Dataset.range(7).filter(lambda x: x % 3 == 0), "[0, 3, 6]"),
    "a Python function in threads": (
        lambda: Dataset.range(3).map(itself, 2, output_signature=NUMBER),
        "[0, 1, 2]",
    ),
    "a prefetch": (lambda: Dataset.range(3).prefetch(2), "[0, 1, 2]"),
}


@pytest.mark.parametrize("name", IN_FORK)
def test_a_fork_reads_what_needs_no_program_of_jax(name):
    make, expected = IN_FORK[name]
    tf.sin(tf.constant(WIDE)).block_until_ready()  # JAX runs in this process
    assert in_fork(lambda: [int(x) for x in make()]) == expected


EXITING = """
import os, sys, warnings
import evenfeed as tf
warnings.simplefilter("ignore")
print(sum(map(float, tf.data.Dataset.range(9).map(lambda x: tf.sin(tf.cast(x, tf.float32))).prefetch(2))) > 0)
child = os.fork()
if child == 0:
    print(len(list(tf.data.Dataset.range(5).map(lambda x: x + 1))), flush=True)
    sys.exit(7)
print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_fork_exits_with_its_own_code():
    ended = subprocess.run(
        [sys.executable, "-c", EXITING], capture_output=True, text=True, timeout=50, check=True
    )
    assert ended.stdout.split() == ["True", "5", "7"]


def test_an_iterator_cannot_be_pickled_and_the_error_says_what_can():
    with pytest.raises(
        TypeError, match=r"(?s)cannot be pickled.*send the dataset and iterator.get_state"
    ):
        pickle.dumps(iter(Dataset.range(3)))
