"""A StopIteration in a user function is an error that names its line: Python would take it for the end of the data."""

import numpy as np
import pytest
from tests.sendable import stops_at_two

import evenfeed as tf
from evenfeed.errors import InvalidArgumentError

NUMBER = tf.TensorSpec([], tf.int64)
HERE = "tests/sendable.py:"
THE_OTHERS = [0, 1, 3, 4]


def numbers():
    return tf.data.Dataset.range(5)


def answers(x):
    return np.bool_(stops_at_two(x) >= 0)


def one_of(x):
    return tf.data.Dataset.from_tensors(stops_at_two(x))


def groups_of_one(key=lambda x: x, reduce=lambda key, group: group, size=lambda key: 1):
    return numbers().group_by_window(key, reduce, window_size_func=size)


AT_TWO = {
    "map": lambda: numbers().map(stops_at_two),
    "map with vectorize=False": lambda: numbers().map(stops_at_two, vectorize=False),
    "map in threads": lambda: numbers().map(stops_at_two, num_parallel_calls=2),
    "map in processes": lambda: numbers().map(stops_at_two, 1, processes=True),
    "numpy_function": lambda: numbers().map(
        lambda x: tf.numpy_function(stops_at_two, [x], tf.int64)
    ),
    "py_function": lambda: numbers().map(lambda x: tf.py_function(stops_at_two, [x], tf.int64)),
    "random_map": lambda: numbers().random_map(lambda _, x: stops_at_two(x), generator="numpy"),
    "filter": lambda: numbers().filter(answers),
    "take_while": lambda: numbers().take_while(answers),
    "flat_map": lambda: numbers().flat_map(one_of),
    "interleave": lambda: numbers().interleave(one_of, cycle_length=1),
    "scan": lambda: numbers().scan(np.int64(0), lambda s, x: (s, stops_at_two(x))),
    "key_func": lambda: groups_of_one(key=stops_at_two),
    "reduce_func": lambda: groups_of_one(reduce=lambda key, group: (stops_at_two(key), group)[1]),
    "window_size_func": lambda: groups_of_one(size=lambda key: 1 + 0 * stops_at_two(key)),
    "element_length_func": lambda: (
        numbers().bucket_by_sequence_length(stops_at_two, [9], [1, 1], no_padding=True).unbatch()
    ),
}

ABOVE = {
    "batch": lambda d: d.batch(1).unbatch(),
    "prefetch": lambda d: d.prefetch(2),
    "cache": lambda d: d.cache(),
    "map": lambda d: d.map(lambda x: x),
    "zip": lambda d: tf.data.Dataset.zip(d, numbers()).map(lambda x, _: x),
    "enumerate": lambda d: d.enumerate().map(lambda _, x: x),
}


def read_on(iterator):
    """Return everything up to the end, including errors."""
    found = []
    while True:
        try:
            found.append(next(iterator))
        except StopIteration:
            return found
        except InvalidArgumentError as error:
            found.append(error)


def split(found):
    errors = [x for x in found if isinstance(x, InvalidArgumentError)]
    return [int(x) for x in found if not isinstance(x, InvalidArgumentError)], errors


def assert_told(error, where=HERE):
    assert "raised StopIteration, which Python would treat as the end of the data" in str(error)
    assert f"at:  {where}" in str(error)
    assert "next(iterator, None)" in str(error)
    assert isinstance(error.__cause__, StopIteration)


@pytest.mark.parametrize("make", AT_TWO.values(), ids=AT_TWO.keys())
def test_a_function_that_raises_stop_iteration_is_an_error_at_its_element(make):
    elements, errors = split(read_on(iter(make())))
    assert elements == THE_OTHERS
    assert len(errors) == 1
    assert_told(errors[0])


@pytest.mark.parametrize("above", ABOVE.values(), ids=ABOVE.keys())
@pytest.mark.parametrize("kind", ["map", "map in threads", "flat_map", "filter"])
def test_the_error_comes_through_what_is_above(kind, above):
    elements, errors = split(read_on(iter(above(AT_TWO[kind]()))))
    assert elements == THE_OTHERS
    assert_told(*errors)


@pytest.mark.parametrize("make", AT_TWO.values(), ids=AT_TWO.keys())
def test_such_an_element_can_be_ignored(make):
    kept = {int(x) for x in make().ignore_errors()}
    assert kept >= set(THE_OTHERS)


def test_a_distributed_iterator_raises_it_too():
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    dataset = numbers().map(stops_at_two, vectorize=False).batch(2)
    found = read_on(iter(strategy.experimental_distribute_dataset(dataset)))
    errors = [x for x in found if isinstance(x, InvalidArgumentError)]
    assert len(found) == 3
    assert_told(*errors)


def test_reduce_raises_it():
    with pytest.raises(InvalidArgumentError) as caught:
        numbers().reduce(np.int64(0), lambda s, x: s + stops_at_two(x))
    assert_told(caught.value)


def stops(*_):
    return next(iter(()))


@pytest.mark.parametrize(
    "give",
    [
        lambda: numbers().map(stops),
        lambda: numbers().filter(stops),
        lambda: numbers().flat_map(stops),
        lambda: numbers().scan(np.int64(0), stops),
        lambda: groups_of_one(key=stops),
        lambda: groups_of_one(reduce=stops),
    ],
    ids=["map", "filter", "flat_map", "scan", "key_func", "reduce_func"],
)
def test_one_that_always_raises_it_is_refused_where_it_is_given(give):
    with pytest.raises(InvalidArgumentError) as caught:
        give()
    assert_told(caught.value, "tests/laws/")


class StopsAtIter:
    """An iterable whose `__iter__` fails."""

    def __iter__(self):
        return stops()


class CountsToTwo:
    """An iterator that ends as Python's protocol says."""

    def __init__(self):
        self._at = 0

    def __iter__(self):
        return self

    def __next__(self):
        self._at += 1
        if self._at > 2:
            raise StopIteration
        return self._at


def generated(source):
    return tf.data.Dataset.from_generator(source, output_signature=NUMBER)


@pytest.mark.parametrize("source", [stops, StopsAtIter])
def test_a_generator_that_cannot_begin_has_not_ended(source):
    with pytest.raises(InvalidArgumentError) as caught:
        next(iter(generated(source)))
    assert_told(caught.value, "tests/laws/")


def test_an_iterator_ends_with_stop_iteration_as_in_python():
    assert [int(x) for x in generated(CountsToTwo)] == [1, 2]


def test_in_a_generator_it_is_pythons_own_runtime_error():
    def source():
        yield 1
        stops()

    iterator = iter(generated(source))
    assert int(next(iterator)) == 1
    with pytest.raises(RuntimeError, match="generator raised StopIteration"):
        next(iterator)


def test_a_reader_func_of_a_snapshot_raises_it(tmp_path):
    with pytest.raises(InvalidArgumentError) as caught:
        numbers().snapshot(str(tmp_path), reader_func=stops)
    assert_told(caught.value, "tests/laws/")


class NoArray:
    """A value that cannot be inspected."""

    def __array__(self, dtype=None, copy=None):
        return stops()


def test_stop_iteration_of_a_value_is_an_error_too():
    with pytest.raises(Exception, match="StopIteration"):
        next(iter(generated(lambda: [NoArray()])))


@pytest.mark.parametrize("error", [StopAsyncIteration, GeneratorExit])
def test_pythons_other_signals_are_raised_as_they_are(error):
    def fails(x):
        if int(x) == 2:
            raise error
        return np.int64(x)

    iterator, found = iter(numbers().map(fails)), []
    with pytest.raises(error):
        found.extend(int(x) for x in iterator)
    if issubclass(error, Exception):
        assert found + [int(x) for x in iterator] == THE_OTHERS


def test_functions_that_are_called_at_once_raise_it_as_python_does():
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    for call in (
        lambda: strategy.run(stops),
        lambda: strategy.experimental_distribute_values_from_function(stops),
        lambda: strategy.distribute_datasets_from_function(stops),
        lambda: numbers().apply(stops),
    ):
        with pytest.raises(StopIteration):
            call()
