from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.failing import ERROR, outcome
from tests.resuming import assert_resumes, rows_of
from tests.unknown import Watched, count, slices

import evenfeed as tf
from evenfeed.core import dtypes
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.specs import INFINITE, UNKNOWN
from evenfeed.plan.choosing import Choose, Counter, Random, Sample
from evenfeed.plan.combining import Zip
from evenfeed.plan.grouping import Batch
from evenfeed.plan.ordering import Repeat
from evenfeed.plan.sources import Range
from evenfeed.runtime.operators.choosing import CountOn, DrawChoices, DrawNumbers, ReadChosen

Dataset = tf.data.Dataset

NUMBERS = Range(0, 3)
FLOATS = Range(0, 3, dtype=dtypes.float32)


def values_of(operator, most=3, limit=60):
    return [row if isinstance(row, type) else row[0][2] for row in rows_of(operator, most, limit)]


@pytest.mark.parametrize(
    ("node", "expected"),
    [
        (Counter(0), [0, 1, 2, 3]),
        (Counter(5, -2), [5, 3, 1, -1]),
        (Counter(5, 0), [5, 5, 5, 5]),
        (Counter(250, 3, dtype=dtypes.uint8), [250, 253, 0, 3]),
        (Counter(0.5, 0.25, dtype=dtypes.float32), [0.5, 0.75, 1.0, 1.25]),
    ],
)
def test_a_counter_counts_on(node, expected):
    assert values_of(CountOn(node), 3, 4)[:4] == expected
    assert node.size == INFINITE
    assert rows_of(CountOn(node), 1, 1)[0][0][0] == str(node.dtype)


@pytest.mark.parametrize("make", [lambda: CountOn(Counter(1, 2)), lambda: DrawNumbers((1, 2))])
def test_endless_numbers_are_found_again(make):
    operator = make()
    operator.read(7)
    fresh = make()
    fresh.restore(operator.state())
    assert values_of(fresh, 4, 4) == values_of(operator, 4, 4)


def test_random_numbers_have_32_bits_and_follow_from_the_seed():
    numbers = np.array(values_of(DrawNumbers((1, 2)), 5000, 5000))
    assert (numbers >= 0).all()
    assert (numbers < 2**32).all()
    assert abs(numbers.mean() / 2**31 - 1) < 0.05
    assert values_of(DrawNumbers((1, 3)), 5, 5) != values_of(DrawNumbers((1, 2)), 5, 5)
    assert Random((1, 2)).element_spec == tf.TensorSpec([], tf.int64)


def chosen(choices, *parts, stop=True):
    node = Choose((NUMBERS,) * len(parts), NUMBERS, stop_on_empty=stop)
    return ReadChosen([part() for part in parts], slices(np.array(choices, np.int64)), node)


def test_each_choice_takes_the_next_element_of_whom_it_names():
    operator = chosen([0, 1, 1, 0], lambda: count(9), lambda: count(100, 109))
    assert values_of(operator, 4) == [0, 100, 101, 1]


def test_a_choice_without_an_element_ends_the_data_or_is_passed_over():
    parts = [lambda: count(2), lambda: count(100, 109)]
    assert values_of(chosen([0, 0, 1, 0, 1], *parts)) == [0, 1, 100]
    assert values_of(chosen([0, 0, 1, 0, 1], *parts, stop=False)) == [0, 1, 100, 101]


def test_a_choice_out_of_range_is_an_error_in_its_place():
    operator = chosen([0, 3, -1, 1], lambda: count(9), lambda: count(100, 109))
    assert values_of(operator, 4) == [0, InvalidArgumentError, InvalidArgumentError, 100]


def test_an_element_that_fails_is_an_error_in_its_place():
    parts = [lambda: Watched(0, KeyError(), 2), lambda: Watched(100, 101)]
    assert values_of(chosen([0, 1, 0, 1, 0], *parts), 5) == [0, 100, KeyError, 101, 2]


@settings(max_examples=40)
@given(
    choices=st.lists(st.integers(-1, 2), max_size=10),
    first=st.lists(st.one_of(st.integers(0, 9), st.just(ValueError())), max_size=5),
    stop=st.booleans(),
)
def test_choices_resume(choices, first, stop):
    def make():
        return chosen(choices, lambda: Watched(*first), lambda: Watched(7, 8, 9), stop=stop)

    assert_resumes(make)


def test_a_state_can_be_taken_up_more_than_once():
    operator = chosen([0, 0, 1], lambda: count(1), lambda: count(100, 109), stop=False)
    state = operator.state()
    for _ in range(2):
        operator.restore(state)
        assert values_of(operator) == [0, 100]


def sampled(weights, *parts, stop=False, seed=(1, 2)):
    node = Sample((NUMBERS,) * len(parts), tuple(weights), seed, stop_on_empty=stop)
    return ReadChosen([part() for part in parts], DrawChoices(weights, seed), node)


@settings(max_examples=15)
@given(seed=st.tuples(st.integers(0, 99)), stop=st.booleans())
def test_samples_resume_and_keep_the_order_of_each(seed, stop):
    def make():
        return sampled([0.3, 0.7], lambda: count(5), lambda: count(100, 105), stop=stop, seed=seed)

    found = [row[0][2] for row in assert_resumes(make)]
    low = [x for x in found if x < 100]
    assert low == sorted(low)
    assert stop or len(found) == 10


def test_draws_follow_the_weights():
    draws = np.array(values_of(DrawChoices([1.0, 3.0, 0.0, 4.0], (5,)), 8000, 8000))
    shares = np.bincount(draws, minlength=4) / len(draws)
    assert shares[2] == 0
    np.testing.assert_allclose(shares, [1 / 8, 3 / 8, 0, 1 / 2], atol=0.03)


def test_weights_may_come_with_each_draw():
    weights = np.array([[1.0, 0.0], [0.0, 1.0]] * 3)
    assert values_of(DrawChoices(slices(weights), (5,)), 4) == [0, 1] * 3
    assert_resumes(lambda: DrawChoices(slices(weights), (5,)))


@pytest.mark.parametrize("weights", [[np.inf, 1.0], [np.inf, np.inf], [1.7e308, 1.7e308]])
def test_weights_without_a_finite_sum_are_refused(weights):
    numbers = tf.data.Dataset.range(3)
    sample = tf.data.Dataset.sample_from_datasets
    with pytest.raises(tf.errors.InvalidArgumentError, match="must have a finite sum"):
        sample([numbers, numbers], np.array(weights))
    each = sample([numbers, numbers], tf.data.Dataset.from_tensors(np.array(weights)).repeat())
    with pytest.raises(tf.errors.InvalidArgumentError, match="must have a finite sum"):
        list(each)


@pytest.mark.parametrize("none", [np.nan, -1.0, -np.inf, 0.0])
def test_weights_that_are_not_above_zero_are_never_drawn(none):
    low, high = tf.data.Dataset.range(3), tf.data.Dataset.range(10, 13)
    for weights in ([none, 0.5], tf.data.Dataset.from_tensors([none, 0.5]).repeat(3)):
        sample = tf.data.Dataset.sample_from_datasets([low, high], weights, seed=1)
        assert [int(x) for x in sample] == [10, 11, 12]


def test_datasets_of_unlike_elements_are_refused():
    for other in (FLOATS, Zip((0, 0), (NUMBERS, NUMBERS))):
        with pytest.raises(TypeError, match="compatible elements"):
            Sample((NUMBERS, other), (0.5, 0.5), (1,))
    with pytest.raises(ValueError, match="Expected at least one dataset"):
        Choose((), NUMBERS)
    with pytest.raises(TypeError, match="choice_dataset must hold int64 scalars"):
        Choose((NUMBERS,), FLOATS)


def test_the_spec_is_what_all_have_in_common():
    two, three = (Batch(NUMBERS, size, drop_remainder=True) for size in (2, 3))
    assert Choose((two, three), NUMBERS).element_spec == tf.TensorSpec([None], tf.int64)


def test_one_without_end_makes_all_endless():
    endless = Repeat(NUMBERS, -1)
    assert Choose((endless, NUMBERS), NUMBERS).size == INFINITE
    assert Sample((NUMBERS, NUMBERS), (1.0, 1.0), (1,)).size == UNKNOWN


def test_choices_may_be_of_unknown_rank():
    def chosen(*choices):
        named = Dataset.from_generator(lambda: iter(choices), tf.int64)
        return Dataset.choose_from_datasets([Dataset.range(3), Dataset.range(10, 13)], named)

    assert [int(x) for x in chosen(0, 1, 1, 0)] == [0, 10, 11, 1]
    assert outcome(chosen(0, [1], 1, [0, 0], [[0]])) == [0, 10, 11, ERROR, 1]
    assert outcome(chosen([0], [1])) == [0, 10]
    assert outcome(chosen([0, 1], [1, 0])) == [ERROR, ERROR]
    with pytest.raises(InvalidArgumentError, match="a single number, but has shape"):
        list(chosen([0, 1]))


def test_choices_of_a_known_rank_are_single_numbers_of_int64():
    numbers = [Dataset.range(3), Dataset.range(3)]
    for choices in (Dataset.range(2).batch(1), Dataset.range(2, output_type=tf.int32)):
        with pytest.raises(TypeError, match="choice_dataset must hold int64 scalars"):
            Dataset.choose_from_datasets(numbers, choices)


def test_datasets_may_come_from_an_iterator():
    made = (Dataset.range(start, start + 2) for start in (0, 10))
    chosen = Dataset.choose_from_datasets(made, Dataset.range(2).repeat(2))
    assert [int(x) for x in chosen] == [0, 10, 1, 11]
    drawn = Dataset.sample_from_datasets(iter([Dataset.range(2), Dataset.range(10, 12)]), seed=1)
    assert sorted(int(x) for x in drawn) == [0, 1, 10, 11]


def test_choices_of_datasets_that_have_ended_are_passed_over_together(monkeypatch):
    served = []
    serve = ReadChosen._serve

    def counted(self, choices):
        served.append(len(choices))
        return serve(self, choices)

    monkeypatch.setattr(ReadChosen, "_serve", counted)
    parts = [Dataset.range(10), Dataset.range(100, 1100), Dataset.range(2000, 2003)]
    found = [int(x) for x in Dataset.sample_from_datasets(parts, seed=4)]
    assert sorted(found) == [*range(10), *range(100, 1100), *range(2000, 2003)]
    assert len(served) < 40


@pytest.mark.parametrize("weights", [None, [1.0 + k % 3 for k in range(60)]])
def test_datasets_are_not_read_for_choices_far_behind_one_that_ended(monkeypatch, weights):
    reads, read_one = [], ReadChosen._read_one

    def counting(self, number, count):
        reads.append(count)
        return read_one(self, number, count)

    monkeypatch.setattr(ReadChosen, "_read_one", counting)
    parts = [Dataset.range(5 * k, 5 * k + 5) for k in range(60)]
    drawn = Dataset.sample_from_datasets(parts, weights, seed=3)
    assert sorted(int(x) for x in drawn) == list(range(300))
    assert sum(reads) < 10 * 300


def test_datasets_that_keep_few_of_their_rows_are_read_for_many_choices_at_a_time(monkeypatch):
    reads, read = [], ReadChosen.read

    def counted(operator, most):
        reads.append(most)
        return read(operator, most)

    monkeypatch.setattr(ReadChosen, "read", counted)
    rare = [Dataset.range(10**6).filter(lambda x: x % 7 == 3).repeat() for _ in range(20)]
    for _ in islice(Dataset.sample_from_datasets(rare, seed=1), 50_000):
        pass
    assert len(reads) < 500
