"""The same seed gives the same order. Each pass and each round has a new order, unless reshuffling is off."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.plans import (
    KINDS,
    PLANS,
    STEPS,
    assert_all_equal,
    events,
    fresh,
    not_addressed,
    ways,
)

from evenfeed.dataset import Dataset
from evenfeed.runtime.elements import ElementIterator

MANY = 30
ROWS = 40

both_ways = pytest.mark.parametrize("way", [frozenset(), frozenset(STEPS)])


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=8)
@given(data=st.data(), way=ways)
def test_datasets_made_alike_have_one_order(kind, data, way):
    plan = data.draw(PLANS[kind])
    one, two = fresh(plan), fresh(plan)
    with not_addressed(way):
        for _ in range(2):  # the second passes are alike, too
            assert_all_equal(events(ElementIterator(one), MANY), events(ElementIterator(two), MANY))


def mixed(buffer=ROWS, **options):
    return Dataset.range(ROWS).shuffle(buffer, **options)


def orders(dataset):
    """Return the numbers of a dataset, round by round."""
    numbers = [int(x) for x in dataset]
    rounds = [tuple(numbers[start : start + ROWS]) for start in range(0, len(numbers), ROWS)]
    assert all(sorted(one) == list(range(ROWS)) for one in rounds)
    return rounds


@both_ways
@pytest.mark.parametrize("buffer", [ROWS // 4, ROWS])
def test_every_pass_has_an_order_of_its_own(way, buffer):
    with not_addressed(way):
        dataset = mixed(buffer, seed=1)
        passes = [orders(dataset)[0] for _ in range(5)]
        assert len(set(passes)) == 5
        again = mixed(buffer, seed=1)
        assert [orders(again)[0] for _ in range(5)] == passes


@both_ways
@pytest.mark.parametrize("buffer", [ROWS // 4, ROWS])
def test_a_fixed_order_stays_in_every_pass_and_round(way, buffer):
    with not_addressed(way):
        dataset = mixed(buffer, seed=1, reshuffle_each_iteration=False)
        assert len({orders(dataset)[0] for _ in range(3)} | {*orders(dataset.repeat(3))}) == 1


@both_ways
def test_a_fixed_order_without_a_seed_is_fixed_too(way):
    with not_addressed(way):
        dataset = mixed(reshuffle_each_iteration=False)
        assert orders(dataset) == orders(dataset)
        assert orders(dataset) != orders(mixed(reshuffle_each_iteration=False))


@both_ways
@pytest.mark.parametrize(
    ("build", "count"),
    [
        (lambda d: d.repeat(4), 4),
        (lambda d: d.repeat(2).repeat(3), 6),
        (lambda d: d.repeat().take(5 * ROWS), 5),
        (lambda d: d.repeat().take(2 * ROWS).repeat(3), 6),
        (lambda d: d.concatenate(d), 2),
        (lambda d: d.concatenate(d).repeat(2), 4),
        (lambda d: d.skip(0).repeat(3).skip(0).repeat(2), 6),
        (lambda d: d.repeat(2).concatenate(d.repeat(2)).repeat(2), 8),
    ],
)
def test_every_round_has_an_order_of_its_own(way, build, count):
    with not_addressed(way):
        rounds = orders(build(mixed(seed=3)))
        assert len(rounds) == count
        assert len(set(rounds)) == count


@both_ways
@pytest.mark.parametrize(
    "build",
    [
        lambda d: Dataset.zip(d, d).repeat(3),
        lambda d: Dataset.zip(d, Dataset.range(ROWS)).repeat(3),
        lambda d: Dataset.zip(d, d.repeat(2)).repeat(3),
        lambda d: Dataset.zip(Dataset.zip(d, d).repeat(1), d).repeat(3),
    ],
)
def test_the_rounds_of_a_zip_have_orders_of_their_own(way, build):
    def left(element):
        return left(element[0]) if isinstance(element, tuple) else int(element)

    with not_addressed(way):
        rounds = orders(left(element) for element in build(mixed(seed=3)))
        assert len(set(rounds)) == 3


@both_ways
def test_a_dataset_beside_itself_has_two_orders(way):
    with not_addressed(way):
        dataset, fixed = mixed(seed=5), mixed(seed=5, reshuffle_each_iteration=False)
        assert any(int(x) != int(y) for x, y in Dataset.zip(dataset, dataset))
        assert all(int(x) == int(y) for x, y in Dataset.zip(fixed, fixed))


@both_ways
def test_other_seeds_and_none_have_other_orders(way):
    with not_addressed(way):
        assert len({orders(mixed(seed=seed))[0] for seed in range(20)} | {*orders(mixed())}) == 21


@both_ways
def test_pass_1_of_a_seed_is_not_pass_0_of_the_next(way):
    with not_addressed(way):
        one, two = mixed(seed=7), mixed(seed=8)
        assert not {orders(one)[0] for _ in range(9)} & {orders(two)[0] for _ in range(9)}
