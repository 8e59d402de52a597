import numpy as np
import pytest
from tests.failing import ERROR, failing, outcome, unless

import evenfeed as tf

NUMBERS = tf.data.Dataset.range(8)


def test_elements_for_which_the_predicate_is_true_stay():
    for predicate in (lambda x: x % 2 == 0, lambda x: int(x) % 2 == 0):
        assert outcome(NUMBERS.filter(predicate)) == [0, 2, 4, 6]
        assert outcome(NUMBERS.take_while(lambda x: x < 3)) == [0, 1, 2]


def test_a_predicate_that_fails_passes_its_element():
    good = unless(3)
    kept = NUMBERS.filter(lambda x: good(x) != 5)
    assert outcome(kept) == [0, 1, 2, ERROR, 4, 6, 7]
    assert outcome(NUMBERS.take_while(lambda x: good(x) < 6)) == [0, 1, 2, ERROR, 4, 5]


def test_an_element_that_fails_is_passed():
    assert outcome(failing(6, 1).filter(lambda x: x > 0)) == [ERROR, 2, 3, 4, 5]
    assert outcome(failing(8, 3).take_while(lambda x: x < 6)) == [0, 1, 2, ERROR, 4, 5]


@pytest.mark.parametrize("method", ["filter", "take_while"])
def test_the_note_names_the_place_of_the_element(method):
    good = unless(5)
    dataset = getattr(failing(8, 2), method)(lambda x: good(x) >= 0)
    iterator, notes = iter(dataset), []
    while len(notes) < 2:
        try:
            next(iterator)
        except ValueError as error:
            notes.append(error.__notes__[0])
    assert "mapping element 2 " in notes[0]
    assert " element 5 " in notes[1]


@pytest.mark.parametrize("method", ["filter", "take_while"])
def test_nothing_is_read_to_learn_what_a_predicate_returns(method):
    pulled = []

    def numbers():
        for number in range(3):
            pulled.append(number)
            yield number

    source = tf.data.Dataset.from_generator(numbers, output_signature=tf.TensorSpec([], tf.int64))
    dataset = getattr(source, method)(lambda x: int(x) < 2)
    assert pulled == []
    assert outcome(dataset) == [0, 1]
    empty = getattr(tf.data.Dataset.range(0), method)(lambda x: int(x) < 2)
    assert outcome(empty) == []


def test_an_answer_that_is_no_bool_is_refused():
    with pytest.raises(ValueError, match="must return a scalar bool"):
        NUMBERS.filter(lambda x: x)
    with pytest.raises(tf.errors.InvalidArgumentError, match="returned int64"):
        list(NUMBERS.filter(lambda x: np.int64(int(x))))


@pytest.mark.parametrize("method", ["filter", "take_while"])
def test_a_predicate_that_returns_a_dataset_or_an_optional_is_a_value_error(method):
    for answer in (NUMBERS, tf.experimental.Optional.from_value(True)):
        made = getattr(NUMBERS, method)(lambda _, answer=answer: answer)
        with pytest.raises(ValueError, match=r"Spec\(.* where TensorSpec\(.*bool.* was expected"):
            list(made)
