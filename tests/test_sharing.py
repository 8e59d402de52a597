"""Datasets and iterators that are shared: by threads, by processes, with the user's own arrays."""

import pickle
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import evenfeed as tf

Dataset = tf.data.Dataset


@pytest.fixture
def impatient():
    """Threads that take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.parametrize("batch_size", [None, 3])
def test_threads_that_share_an_iterator_get_every_element_once(impatient, batch_size):
    numbers = Dataset.range(20_000)
    iterator = iter(numbers if batch_size is None else numbers.batch(batch_size))

    def all_there_is(_):
        return [element.reshape(-1).tolist() for element in iterator]

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(all_there_is, range(8)))
    assert sorted(x for part in found for element in part for x in element) == list(range(20_000))


def test_a_dataset_that_was_pickled_cannot_be_written_to_through_an_element():
    dataset = pickle.loads(pickle.dumps(Dataset.from_tensor_slices(np.arange(4).reshape(2, 2))))
    with pytest.raises(ValueError, match="read-only"):
        next(iter(dataset))[...] = 99
    assert [row.tolist() for row in dataset] == [[0, 1], [2, 3]]


def test_an_array_is_not_copied():
    array = np.arange(6).reshape(3, 2)
    assert np.shares_memory(next(iter(Dataset.from_tensor_slices(array))), array)
    assert array.flags.writeable


def test_a_thread_that_read_last_waits_for_one_that_has_just_taken_the_lock():
    iterator = iter(Dataset.range(9))
    assert next(iterator) == 0
    iterator._lock.acquire()  # as another thread does, before it says that it reads
    threading.Timer(0.05, iterator._lock.release).start()
    assert next(iterator) == 1
