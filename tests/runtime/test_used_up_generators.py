"""A generator that was made outside of the function of `from_generator` has no elements for a second pass: a warning."""

import warnings

import pytest

import evenfeed as tf

SIGNATURE = tf.TensorSpec([], tf.int32)


def numbers(count=3):
    yield from range(count)


def rows(dataset):
    return [int(row) for row in dataset]


def test_a_generator_that_is_returned_again_warns_at_the_line_of_the_dataset():
    made = numbers()
    dataset = tf.data.Dataset.from_generator(lambda: made, output_signature=SIGNATURE).batch(2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [batch.tolist() for batch in dataset] == [[0, 1], [2]]
    with pytest.warns(UserWarning, match="create it in the function") as found:
        assert list(dataset) == []
    assert [warning.filename for warning in found] == [__file__]


class StartsOver:
    """An iterator that begins again when it is asked for itself."""

    def __iter__(self):
        self.rest = numbers()
        return self

    def __next__(self):
        return next(self.rest)


STARTS_OVER = StartsOver()


@pytest.mark.parametrize("function", [numbers, lambda: range(3), lambda: STARTS_OVER])
def test_a_function_whose_passes_begin_anew_does_not_warn(function):
    dataset = tf.data.Dataset.from_generator(function, output_signature=SIGNATURE)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert rows(dataset) == rows(dataset) == [0, 1, 2]
        assert rows(dataset.repeat(2)) == [0, 1, 2, 0, 1, 2]


def test_generators_of_several_arguments_are_different_ones():
    counts = tf.data.Dataset.from_tensor_slices([1, 2])
    dataset = counts.flat_map(
        lambda n: tf.data.Dataset.from_generator(numbers, args=(n,), output_signature=SIGNATURE)
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert rows(dataset) == rows(dataset) == [0, 0, 1]
