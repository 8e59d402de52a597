"""After Ctrl-C an iterator continues with the element that would have come: none is lost, none comes twice.

Ctrl-C is raised at one instruction after another (`tests/interrupting.py`): at all instructions that return elements,
and at a sample of those that read them.
"""

import gc
from functools import cache
from itertools import repeat
from operator import methodcaller

import jax
import numpy as np
import pytest
from tests.interrupting import interrupted
from tests.sendable import plus_one

import evenfeed as tf
from evenfeed.core import iteration, side_effects
from evenfeed.core.concurrency import threads, waiting
from evenfeed.core.randomness import seeds
from evenfeed.core.randomness.random_bits import current_draws
from evenfeed.feeding import distributed_dataset
from evenfeed.feeding import distributed_dataset as input_iterator
from evenfeed.feeding.ahead import prefetch
from evenfeed.formats.pages import saved
from evenfeed.runtime import elements
from evenfeed.runtime.caches import cache_files
from evenfeed.runtime.operators import parallel as work_ahead

# Python closes a file that was being opened when Ctrl-C came, and warns.
pytestmark = pytest.mark.filterwarnings(
    "ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning"
)

NUMBER = tf.TensorSpec([], tf.int64)
SAMPLE = 30


def numbers(size=7):
    return tf.data.Dataset.range(size)


def itself(x):
    return x if x >= 0 else -x  # a condition, so that it does not trace


def mapped():
    return numbers().map(itself, output_signature=NUMBER)


def generated():
    return tf.data.Dataset.from_generator(lambda: iter(range(7)), output_signature=NUMBER)


def ten_times(x):
    return numbers(3).map(lambda y: y + 10 * x)


def in_threads():
    return numbers().map(itself, num_parallel_calls=3, output_signature=NUMBER)


def failing():
    return numbers().map(lambda x: x // 0 if x == 3 else x, vectorize=False)


@cache
def two_replicas():
    return tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


def distributed(dataset):
    return two_replicas().experimental_distribute_dataset(dataset)


PLANS = {
    "range": numbers,
    "traced map": lambda: numbers().map(lambda x: x + 1),
    "map": mapped,
    "filter": lambda: numbers().filter(lambda x: x % 3 != 1),
    "take_while": lambda: numbers().take_while(lambda x: x < 5),
    "ignore_errors": lambda: failing().ignore_errors(),
    "batch": lambda: mapped().batch(2),
    "padded_batch": lambda: mapped().padded_batch(2),
    "unbatch": lambda: numbers().batch(4).unbatch(),
    "rebatch": lambda: numbers().batch(4).rebatch(3),
    "shuffle": lambda: numbers().shuffle(4, seed=1, reshuffle_each_iteration=False),
    "shuffle of a generator": lambda: generated().shuffle(
        4, seed=1, reshuffle_each_iteration=False
    ),
    "prefetch": lambda: mapped().prefetch(2),
    "prefetch of prefetch": lambda: numbers().map(plus_one).prefetch(2).batch(2).prefetch(1),
    "generator": generated,
    "interleave": lambda: numbers(3).interleave(ten_times, cycle_length=2),
    "flat_map": lambda: numbers(3).flat_map(ten_times),
    "window": lambda: numbers().window(3, 2).flat_map(lambda window: window.batch(3)),
    "group_by_window": lambda: numbers().group_by_window(
        lambda x: x % 2, lambda key, group: group.batch(2), 2
    ),
    "scan": lambda: numbers().scan(np.int64(0), lambda s, x: (s + x, s)),
    "zip": lambda: tf.data.Dataset.zip(mapped(), numbers()),
    "concatenate": lambda: mapped().concatenate(numbers()),
    "repeat": lambda: mapped().repeat(2),
    "enumerate, skip, take": lambda: mapped().enumerate().skip(2).take(4),
    "shard": lambda: mapped().shard(2, 1),
    "choose_from_datasets": lambda: tf.data.Dataset.choose_from_datasets(
        [mapped(), numbers()], tf.data.Dataset.range(2).repeat(4)
    ),
    "map in threads": in_threads,
    "interleave in threads": lambda: numbers(3).interleave(
        lambda x: tf.data.Dataset.from_tensors(x).repeat(2), 2, num_parallel_calls=2
    ),
    "unique": lambda: numbers().map(lambda x: x // 2).unique(),
    "distributed": lambda: distributed(numbers(12).batch(4)),
    "distributed, per element": lambda: distributed(mapped().batch(2)),
    "distributed, prefetched": lambda: distributed(mapped().batch(2).prefetch(1)),
}

# Datasets whose second pass differs.
PASSES = {
    "random_map": lambda _: numbers().random_map(
        lambda draws, x: x + draws.integers(9), seed=3, generator="numpy"
    ),
    "sample_from_datasets": lambda _: tf.data.Dataset.sample_from_datasets(
        [numbers(4), numbers(3)], seed=2
    ),
    "cache": lambda _: mapped().cache().repeat(2),
    "cache in a file": lambda folder: numbers().cache(str(folder / "kept")).repeat(2),
    "snapshot": lambda folder: numbers().snapshot(str(folder)).repeat(2),
}


@pytest.fixture(autouse=True)
def _leaves_no_trace():
    gc.disable()  # Python prints and ignores Ctrl-C in a finalizer
    before = settings()
    yield
    gc.enable()
    assert settings() == before


def settings():
    return (
        jax.config.jax_enable_x64,
        jax.config.jax_default_device,
        side_effects.here.watcher,
        iteration.reading.instead,
        seeds.calling.call,
        current_draws(),
    )


def plain(element):
    if isinstance(element, tuple):
        return tuple(map(plain, element))
    parts = element.values if isinstance(element, tf.distribute.DistributedValues) else (element,)
    return [np.asarray(part).tolist() for part in parts]


def read(iterator, at=None, files=None):
    """Return the elements up to an interruption at a given instruction, and how many instructions ran.

    C code fills the list, so Ctrl-C cannot come between taking an element and storing it.
    """
    found = []
    try:
        with interrupted(at, files) as counting:
            found.extend(iterator)
    except KeyboardInterrupt:
        pass
    return found, counting.count


def assert_nothing_is_lost(dataset, places, files=None):
    """Interrupt a pass at some places: it continues exactly, and so does one restored from its state."""
    expected = [plain(x) for x in dataset]
    count = read(iter(dataset), files=files)[1]
    for at in places(count):
        iterator, restored = iter(dataset), iter(dataset)
        found, _ = read(iterator, at, files)
        restored.set_state(iterator.get_state())
        assert [plain(x) for x in [*found, *iterator]] == expected, at
        assert [plain(x) for x in [*found, *restored]] == expected, at


def every(count):
    return range(1, count + 1)


def sample(count):
    return range(1 + count % 7, count + 1, max(1, count // SAMPLE))


@pytest.mark.parametrize("make", PLANS.values(), ids=PLANS.keys())
def test_a_read_that_is_interrupted_loses_nothing(make):
    assert_nothing_is_lost(make(), sample)


def assert_first_pass_loses_nothing(make, tmp_path, places, files=None):
    folders = (tmp_path / str(number) for number in range(10**6))

    def started():
        folder = next(folders)
        folder.mkdir()
        return iter(make(folder))

    expected, count = read(started(), files=files)
    for at in places(count):
        iterator = started()
        found, _ = read(iterator, at, files)
        assert [plain(x) for x in [*found, *iterator]] == [plain(x) for x in expected], at


@pytest.mark.parametrize("make", PASSES.values(), ids=PASSES.keys())
def test_a_first_pass_that_is_interrupted_loses_nothing(make, tmp_path):
    assert_first_pass_loses_nothing(make, tmp_path, sample)


@pytest.mark.parametrize("name", ["cache in a file", "snapshot"])
def test_no_instruction_that_makes_files_whole_can_spoil_them(name, tmp_path):
    files = [module.__file__ for module in (cache_files, saved)]
    assert_first_pass_loses_nothing(PASSES[name], tmp_path, every, files)


HANDING_OVER = [
    module.__file__
    for module in (elements, iteration, prefetch, distributed_dataset, input_iterator)
]


@pytest.mark.parametrize(
    "make",
    [lambda: numbers(3).map(lambda x: x + 1), lambda: distributed(numbers(8).batch(4))],
    ids=["map", "distributed"],
)
def test_no_instruction_that_hands_an_element_over_can_lose_it(make):
    assert_nothing_is_lost(make(), every, HANDING_OVER)


def test_no_instruction_that_waits_for_threads_can_break_them():
    files = [module.__file__ for module in (work_ahead, threads, waiting)]
    assert_nothing_is_lost(in_threads(), lambda count: range(1, count + 1, 3), files)


@cache
def old_strategy():
    return tf.compat.v1.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


OTHER_WAYS = {
    "get_next": (lambda: iter(numbers(2)), "get_next"),
    "get_next_as_optional": (lambda: iter(numbers(2)), "get_next_as_optional"),
    "as_numpy_iterator": (lambda: numbers(2).as_numpy_iterator(), "__next__"),
    "as_array_iterator": (
        lambda: distributed(numbers(8).batch(4)).as_array_iterator(),
        "__next__",
    ),
    "TensorFlow 1": (
        lambda: old_strategy().make_dataset_iterator(numbers(8).batch(4)),
        "__next__",
    ),
}


@pytest.mark.parametrize(("make", "method"), OTHER_WAYS.values(), ids=OTHER_WAYS.keys())
def test_other_ways_to_ask_for_two_elements_lose_none_either(make, method):
    def asked(iterator, times):
        return map(methodcaller(method), repeat(iterator, times))

    def given(found):
        return [plain(x.get_value() if hasattr(x, "get_value") else x) for x in found]

    expected, count = read(asked(make(), 2), files=HANDING_OVER)
    for at in every(count):
        iterator = make()
        found, _ = read(asked(iterator, 2), at, HANDING_OVER)
        found.extend(asked(iterator, 2 - len(found)))
        assert given(found) == given(expected), at
