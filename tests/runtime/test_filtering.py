from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.failing import ERROR, failing, outcome, unless
from tests.resuming import assert_resumes, rows_of

import evenfeed as tf
from evenfeed.dataset import plan_of
from evenfeed.errors import InvalidArgumentError
from evenfeed.plan.sources import Range
from evenfeed.runtime.build import build
from evenfeed.runtime.functions.row_function import RowFunction, trace
from evenfeed.runtime.operators.filtering import KeepSome
from evenfeed.runtime.operators.sources import Numbers
from evenfeed.runtime.positions.orders import Forward
from evenfeed.runtime.positions.rows import Walk
from evenfeed.runtime.run import Run

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


def test_take_while_looks_at_whole_blocks(monkeypatch):
    monkeypatch.setattr(RowFunction, "one", None)
    found = [int(x) for x in tf.data.Dataset.range(10**12).take_while(lambda x: x % 3000 < 2500)]
    assert found == list(range(2500))


def test_take_while_does_not_raise_errors_after_its_end():
    table = np.arange(5)
    end = 3
    dataset = tf.data.Dataset.range(20).batch(1).unbatch()
    assert outcome(dataset.take_while(lambda x: tf.gather(table, x) < end)) == [0, 1, 2]
    wrong = dataset.skip(3).take_while(lambda x: tf.gather(table, x) < 9)
    assert outcome(wrong)[:3] == [3, 4, ERROR]


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


PREDICATES = [
    lambda x: x >= 0,
    lambda x: x % 2 == 0,
    lambda x: x % 7 != 3,
    lambda x: (x < 10) | (x > 90),
    lambda x: x % 50 == 4,
    lambda x: x < 0,
    lambda x: tf.gather(tf.range(100), x) != 54,  # its index may be out of range, so it runs alone
    lambda x: int(x) % 3 > 0,
]


@given(
    st.lists(st.sampled_from(PREDICATES), min_size=2, max_size=5),
    st.integers(1, 40),
    st.integers(0, 12),
)
def test_filters_in_a_row_keep_what_all_of_them_keep(predicates, batch_size, passed):
    dataset = tf.data.Dataset.range(100)
    for predicate in predicates:
        dataset = dataset.filter(predicate)
    expected = [x for x in range(100) if all(bool(one(np.int64(x))) for one in predicates)]
    assert [int(x) for x in dataset] == expected
    batches = [expected[at : at + batch_size] for at in range(0, len(expected), batch_size)]
    iterator = iter(dataset.batch(batch_size))
    assert [batch.tolist() for batch in islice(iterator, passed)] == batches[:passed]
    again = iter(dataset.batch(batch_size))
    again.set_state(iterator.get_state())
    assert [batch.tolist() for batch in again] == batches[passed:]


def test_filters_in_a_row_are_one_operator_unless_one_of_them_can_fail():
    def depth(dataset):
        plan = plan_of(dataset)
        operator, count = build(plan, Run(plan)), 0
        while operator.children():
            count += isinstance(operator, KeepSome)
            (operator,) = operator.children()
        return count

    both = NUMBERS.filter(lambda x: x > 2).filter(lambda x: x % 2 == 0)
    assert depth(both) == 1
    assert depth(both.filter(lambda x: tf.gather(tf.range(9), x) > 0)) == 2
    assert depth(both.filter(lambda x: int(x) > 0)) == 2


def test_a_filter_that_may_fail_sees_only_what_the_one_below_keeps():
    table = np.arange(5)
    kept = NUMBERS.filter(lambda x: x < 5).filter(lambda x: tf.constant(table)[x] % 2 == 0)
    assert outcome(kept.filter(lambda x: x > 0)) == [2, 4]


def filtered(predicate, count=40, look=64):
    """Return a filter that looks at many elements at a time from the start."""
    number = tf.TensorSpec([], tf.int64)
    function = trace(predicate, number, None, returns=tf.TensorSpec([], tf.bool))
    operator = KeepSome(Walk(Numbers(Range(0, count)), Forward(count)), function)
    assert operator._look is not None
    operator._look.rows = look
    return operator


def test_a_filter_that_looks_ahead_keeps_the_same_and_resumes_exactly():
    found = assert_resumes(lambda: filtered(lambda x: x % 3 == 1), 1, 2, 50)
    assert [row[0][2] for row in found] == [x for x in range(40) if x % 3 == 1]


def test_a_filter_that_looks_ahead_raises_an_error_in_its_place():
    table = np.arange(10)

    def predicate(x):
        return tf.constant(table)[x % 13] % 2 == 1

    found = assert_resumes(lambda: filtered(predicate), 1, 2, 50)
    expected = [
        InvalidArgumentError if x % 13 > 9 else x for x in range(40) if x % 13 > 9 or x % 13 % 2
    ]
    assert [row if isinstance(row, type) else row[0][2] for row in found] == expected


def test_a_filter_that_keeps_little_looks_at_many_elements_at_a_time(monkeypatch):
    looks, rows = [], RowFunction.rows

    def counted(function, block, first=0):
        looks.append(block.length)
        return rows(function, block, first)

    monkeypatch.setattr(RowFunction, "rows", counted)
    operator = filtered(lambda x: x % 100_000 == 5, count=10**6, look=1)
    assert len(rows_of(operator, 1)) == 10
    assert sum(looks) < 2 * 10**6  # little is looked at twice
    assert len(looks) < 2000
