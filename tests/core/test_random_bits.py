import subprocess
import sys
import textwrap

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenfeed.core.randomness import random_bits
from evenfeed.core.randomness.random_bits import Permutation, key_of, numbers_below, raw, words_at

keys = st.integers(0, 2**128 - 1)


def stored(key, size):
    return Permutation(key, size)


def computed(key, size):
    """Return a computed permutation, as used for many rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(random_bits, "_STORED", 0)
        return Permutation(key, size)


both_kinds = pytest.mark.parametrize("make", [stored, computed])


def too_uneven(counts, expected):
    """Return True if counts differ more than chance explains, at one in a hundred thousand."""
    counts = np.asarray(counts, float).ravel()
    freedom = len(counts) - 1
    square = ((counts - expected) ** 2 / expected).sum()
    return square > freedom + 4.3 * np.sqrt(2 * freedom) + 12


@given(key=keys, start=st.integers(0, 2**40), count=st.integers(1, 50), split=st.integers(0, 50))
def test_any_range_can_be_recomputed(key, start, count, split):
    whole = raw(key, start, count)
    split = min(split, count)
    parts = [raw(key, start, split), raw(key, start + split, count - split)]
    np.testing.assert_array_equal(np.concatenate(parts), whole)


@given(keys, st.integers(1, 2**32 - 1))
def test_numbers_are_below_the_limit(key, limit):
    numbers = numbers_below(key, 0, 100, limit)
    assert numbers.dtype == np.int64
    assert numbers.min() >= 0
    assert numbers.max() < limit


@pytest.mark.parametrize("limit", [1, 2, 3, 10, 100])
def test_numbers_below_a_limit_are_equally_frequent(limit):
    counts = np.bincount(numbers_below(key_of(1), 0, 1000 * limit, limit), minlength=limit)
    assert not too_uneven(counts, 1000)


def test_a_key_depends_on_every_number_and_its_place():
    near = [(a, b) for a in range(40) for b in range(40)]
    assert len({key_of(*pair) for pair in near}) == len(near)
    assert len({key_of(1, 23), key_of(12, 3), key_of(123), key_of(1, 2, 3), key_of(-1, 23)}) == 5
    assert all(0 <= key_of(*pair) < 2**128 for pair in near)


def test_keys_of_near_numbers_differ_in_half_of_their_bits():
    apart = [(key_of(7, n) ^ key_of(7, n + 1)).bit_count() for n in range(2000)]
    assert 63 < np.mean(apart) < 65
    assert min(apart) > 30


def test_draws_of_near_keys_have_nothing_in_common():
    one, two = (numbers_below(key_of(3, n), 0, 5000, 1000) for n in (0, 1))
    assert abs(np.corrcoef(one, two)[0, 1]) < 0.06
    assert (one == two).sum() < 25


@both_kinds
@pytest.mark.parametrize("size", [*range(1, 40), 63, 64, 65, 255, 256, 257, 1000, 4097, 65537])
def test_a_permutation_has_every_number_once(make, size):
    order = make(key_of(size), size).stretch(0, size)
    assert order.dtype == np.int64
    assert np.array_equal(np.sort(order), np.arange(size))


def test_a_permutation_above_the_stored_limit_has_every_number_once():
    size = random_bits._STORED + 3
    order = Permutation(key_of(1), size)
    assert order._stored is None
    seen = np.zeros(size, bool)
    for start in range(0, size, 1 << 20):
        seen[order.stretch(start, min(1 << 20, size - start))] = True
    assert seen.all()


@both_kinds
@given(key=keys, size=st.integers(1, 300), steps=st.lists(st.integers(0, 299), max_size=20))
def test_any_step_can_be_computed(make, key, size, steps):
    order = make(key, size)
    steps = np.array([step % size for step in steps], np.int64)
    whole = order.stretch(0, size)
    np.testing.assert_array_equal(order.at(steps), whole[steps])
    np.testing.assert_array_equal(order.stretch(size // 2, size - size // 2), whole[size // 2 :])


@both_kinds
def test_every_number_is_equally_likely_at_a_place(make):
    size, rounds = 8, 1200
    counts = np.zeros((size, size))
    for number in range(rounds):
        counts[np.arange(size), make(key_of(5, number), size).stretch(0, size)] += 1
    assert not too_uneven(counts, rounds / size)


@both_kinds
def test_all_orders_of_four_are_equally_frequent(make):
    rounds = 2400
    seen = [tuple(make(key_of(6, n), 4).stretch(0, 4).tolist()) for n in range(rounds)]
    _, counts = np.unique(seen, axis=0, return_counts=True)
    assert len(counts) == 24
    # A computed bijection need not be uniform over all orders, but no order may stand out.
    if make is stored:
        assert not too_uneven(counts, rounds / 24)
    assert counts.max() < 2 * rounds / 24


@both_kinds
@pytest.mark.parametrize("size", [50_000, 65_536, 100_003])
def test_a_bucket_of_places_has_numbers_of_all_buckets(make, size):
    order = make(key_of(size, 1), size).stretch(0, size)
    buckets = np.arange(size) * 16 // size, order * 16 // size
    counts = np.zeros((16, 16))
    np.add.at(counts, buckets, 1)
    assert not too_uneven(counts, size / 256)


@both_kinds
@pytest.mark.parametrize("size", [50_000, 65_536, 100_003])
def test_neighbours_are_any_distance_apart(make, size):
    order = make(key_of(size, 2), size).stretch(0, size)
    for apart in (1, 2, 256):
        distance = (order[apart:] - order[:-apart]) % size
        counts = np.bincount(distance * 64 // size, minlength=64)
        assert not too_uneven(counts, len(distance) / 64)


@both_kinds
def test_the_low_bits_are_as_random_as_the_high_ones(make):
    order = make(key_of(9), 65_536).stretch(0, 65_536)
    pairs = np.zeros((16, 16))
    np.add.at(pairs, (np.arange(65_536) % 16, order % 16), 1)
    assert not too_uneven(pairs, 256)


@both_kinds
def test_a_permutation_has_one_fixed_point_on_average(make):
    fixed = sum(
        int((make(key_of(4, n), 1000).stretch(0, 1000) == np.arange(1000)).sum())
        for n in range(300)
    )
    assert 230 < fixed < 370  # one per permutation is expected


@both_kinds
def test_orders_of_near_keys_have_nothing_in_common(make):
    one, two = (make(key_of(8, n), 20_000).stretch(0, 20_000) for n in (0, 1))
    assert abs(np.corrcoef(one, two)[0, 1]) < 0.03
    assert (one == two).sum() < 10


FIRST_OF_A_BILLION = """
    import resource
    import evenfeed as tf
    peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    before = peak()
    dataset = tf.data.Dataset.range(10**9).shuffle(10**9, seed=1)
    iterator = iter(dataset)
    first = int(next(iterator))
    more = {int(next(iterator)) for _ in range(1000)}
    print(first, len(more | {first}), max(more) > 9 * 10**8, peak() - before)
"""


@pytest.mark.slow
def test_a_billion_rows_are_shuffled_at_once_and_in_little_memory():
    program = [sys.executable, "-c", textwrap.dedent(FIRST_OF_A_BILLION)]
    said = subprocess.run(program, capture_output=True, text=True, check=True).stdout.split()
    first, distinct, wide, megabytes = said
    assert 0 <= int(first) < 10**9
    assert (distinct, wide) == ("1001", "True")
    assert int(megabytes) < 100


@given(key=keys, steps=st.lists(st.integers(0, 2**63 - 1), min_size=1, max_size=20))
def test_the_words_of_a_step_do_not_depend_on_other_steps(key, steps):
    together = words_at(key, np.array(steps))
    assert together.dtype == np.uint32
    for step, words in zip(steps, together, strict=True):
        np.testing.assert_array_equal(words_at(key, np.array([step]))[0], words)


@given(keys)
def test_no_two_steps_have_the_same_words(key):
    words = words_at(key, np.arange(5000)).astype(np.uint64)
    assert len(np.unique(words[:, 0] << np.uint64(32) | words[:, 1])) == 5000


def bits_of(words):
    """Return the 64 bits of each step."""
    return np.unpackbits(np.ascontiguousarray(words).view(np.uint8).reshape(len(words), -1), axis=1)


@pytest.mark.parametrize("key", [0, 1, 2**127, key_of(3), key_of(4)])
def test_the_bits_of_neighbouring_steps_are_unrelated(key):
    many = 20_000
    here = bits_of(words_at(key, np.arange(many)))
    for distance in (1, 2, 3, 64, 1 << 32):
        there = bits_of(words_at(key, np.arange(many) + distance))
        changed = (here ^ there).mean(axis=0)
        assert np.abs(changed - 0.5).max() < 0.02  # 5.6 times what chance does
    assert np.abs(here.mean(axis=0) - 0.5).max() < 0.02
    together = np.corrcoef(here.T) - np.eye(64)
    assert np.abs(together).max() < 0.04


@pytest.mark.parametrize("bit", [0, 1, 63, 64, 127])
def test_every_bit_of_the_key_counts(bit):
    one, two = (bits_of(words_at(key, np.arange(20_000))) for key in (0, 1 << bit))
    assert np.abs((one ^ two).mean(axis=0) - 0.5).max() < 0.02
