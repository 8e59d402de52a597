from itertools import islice

import pytest

import evenfeed as tf
from evenfeed.dataset import plan_of
from evenfeed.runtime.build import build
from evenfeed.runtime.operator import read_full
from evenfeed.runtime.run import Run


def drops(count, rounds, kept=lambda x: x % 3 != 1):
    return tf.data.Dataset.range(count).filter(kept).map(lambda x: (x, x * 2)).repeat(rounds)


@pytest.mark.parametrize("rounds", [-1, 0, 1, 2, 7])
@pytest.mark.parametrize("count", [0, 1, 5])
def test_short_rounds_that_are_alike_are_copied(count, rounds):
    one = [[x, x * 2] for x in range(count) if x % 3 != 1]
    expected = one * (100 if rounds < 0 else rounds)

    def read(iterator, most=50):
        return [[int(part) for part in pair] for pair in islice(iterator, most)]

    dataset = drops(count, rounds)
    assert read(iter(dataset)) == expected[:50]
    for size in (1, 3, 4, 16):
        iterator, found = iter(dataset.batch(size)), []
        for _ in range(5):
            again = iter(dataset.batch(size))
            again.set_state(iterator.get_state())
            batch, same = next(iterator, None), next(again, None)
            if batch is None or same is None:
                assert batch is same
                break
            assert [part.tolist() for part in batch] == [part.tolist() for part in same]
            found += zip(*(part.tolist() for part in batch), strict=True)
        assert list(map(list, found)) == expected[: 5 * size]


def test_a_kept_round_is_not_what_the_consumer_gets():
    iterator = iter(drops(5, -1).batch(30))
    for _ in range(4):
        numbers, _ = next(iterator)
        assert numbers.tolist() == [0, 2, 3] * 10
        if numbers.flags.writeable:
            numbers[...] = 9


def starts(dataset):
    """Return how often the repeated dataset is started for 3,000 elements."""
    plan, count = plan_of(dataset), []
    operator = build(plan, Run(plan))
    start = operator._start
    operator._start = lambda number: count.append(number) or start(number)
    assert sum(block.length for block in read_full(operator, 3000)) == 3000
    return len(count)


def test_only_rounds_that_are_alike_are_kept():
    def numbers():
        return iter(range(3))

    generated = tf.data.Dataset.from_generator(
        numbers, output_signature=tf.TensorSpec([], tf.int64)
    )
    plain = tf.data.Dataset.range(3)
    assert starts(plain.filter(lambda x: x >= 0).repeat()) == 1
    for other in (
        generated.filter(lambda x: x >= 0),
        plain.filter(lambda x: int(x) >= 0),
        plain.filter(lambda x: x >= 0).shuffle(3),
        plain.filter(lambda x: x + tf.cast(tf.random.uniform([]), tf.int64) >= 0),
    ):
        assert starts(other.repeat()) >= 999
    large = tf.data.Dataset.range(100_000).filter(lambda x: x >= 0)
    plan = plan_of(large.repeat())
    operator = build(plan, Run(plan))
    assert sum(block.length for block in read_full(operator, 250_000)) == 250_000
    assert operator._kept is None
