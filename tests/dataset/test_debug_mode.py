"""Tests for dataset/debug_mode.py: in debug mode, functions run as plain Python when an element is read."""

import threading

import numpy as np
import pytest

import evenfeed as tf
from evenfeed.dataset.debug_mode import mode

Dataset = tf.data.Dataset


@pytest.fixture(autouse=True)
def _debugging(monkeypatch):
    monkeypatch.setattr(mode, "is_debugging", False)
    tf.data.experimental.enable_debug_mode()


def _noting(calls):
    def function(x):
        calls.append((x, threading.current_thread()))
        return x + 1

    return function


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"vectorize": True},
        {"num_parallel_calls": 4},
        {"num_parallel_calls": tf.data.AUTOTUNE, "deterministic": False},
        {"num_parallel_calls": 2, "processes": True},
    ],
)
def test_a_map_runs_in_this_thread_for_the_element_that_is_read(how):
    calls = []
    dataset = Dataset.range(5).map(_noting(calls), **how).prefetch(2)
    calls.clear()  # it was traced
    iterator = iter(dataset)
    for number in range(3):
        assert int(next(iterator)) == number + 1
        assert [int(x) for x, _ in calls] == list(range(number + 1))
    assert {thread for _, thread in calls} == {threading.current_thread()}


def test_filters_scans_and_reductions_run_as_plain_python():
    kept, added = [], []
    dataset = Dataset.range(4).filter(lambda x: kept.append(x) or x % 2 == 1)
    kept.clear()
    assert [int(x) for x in dataset] == [1, 3]
    assert [int(x) for x in kept] == [0, 1, 2, 3]
    scanned = Dataset.range(3).scan(np.int64(0), lambda s, x: added.append(x) or (s + x, s + x))
    added.clear()
    assert [int(x) for x in scanned] == [0, 1, 3]
    assert [int(x) for x in added] == [0, 1, 2]


def test_interleave_keeps_its_order_and_reads_in_this_thread():
    calls = []

    def inner(x):
        return Dataset.from_tensors(x).repeat(2).map(_noting(calls))

    dataset = Dataset.range(4).interleave(inner, num_parallel_calls=2)
    found = [int(x) for x in dataset]
    assert {thread for _, thread in calls} == {threading.current_thread()}
    mode.is_debugging = False
    assert found == [int(x) for x in Dataset.range(4).interleave(inner, num_parallel_calls=2)]


def test_arguments_are_checked_as_before():
    with pytest.raises(tf.errors.InvalidArgumentError, match="buffer_size must be at least 0"):
        Dataset.range(3).prefetch(-2)
    with pytest.raises(TypeError, match="num_parallel_calls must be a whole number"):
        Dataset.range(3).map(abs, num_parallel_calls="two")


def test_datasets_that_exist_run_as_they_did():
    mode.is_debugging = False
    calls = []
    dataset = Dataset.range(5).map(_noting(calls))
    tf.data.experimental.enable_debug_mode()
    calls.clear()
    assert [int(x) for x in dataset] == [1, 2, 3, 4, 5]
    assert len(calls) < 5
