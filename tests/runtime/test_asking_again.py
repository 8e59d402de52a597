"""Code that an iterator runs cannot ask that iterator for more: it would wait for itself."""

import pytest

import evenfeed as tf

Dataset = tf.data.Dataset
INT = tf.TensorSpec([], tf.int64)


@pytest.mark.timeout(30)
def test_a_generator_that_asks_its_own_iterator_is_told_so():
    def generator():
        yield 0
        yield next(iterator)

    iterator = iter(Dataset.from_generator(generator, output_signature=INT))
    assert int(next(iterator)) == 0
    with pytest.raises(tf.errors.FailedPreconditionError, match="waits for that function"):
        next(iterator)


@pytest.mark.timeout(30)
def test_a_function_that_asks_its_own_iterator_is_told_so():
    iterators = []

    def function(x):
        return next(iterators[0]) if iterators else x

    data = Dataset.range(4).map(lambda x: tf.numpy_function(function, [x], tf.int64))
    iterators.append(iter(data))
    assert int(next(iterators[0])) == 0  # computed by map()
    with pytest.raises(tf.errors.FailedPreconditionError, match=r"iter\(dataset\)"):
        next(iterators[0])


def test_a_generator_may_ask_another_iterator_of_its_dataset():
    numbers = Dataset.range(3)

    def generator():
        yield from (int(x) for x in numbers)

    data = Dataset.from_generator(generator, output_signature=INT)
    assert [(int(x), int(y)) for x, y in zip(data, data, strict=True)] == [(0, 0), (1, 1), (2, 2)]
