from collections import Counter

import numpy as np
import pytest

from evenfeed.core.randomness import seeds


@pytest.fixture(autouse=True)
def _fresh():
    seeds.set_seed(None)
    yield
    seeds.set_seed(None)


def operations(count):
    return [seeds.operation_seed(None) for _ in range(count)]


def test_without_any_seed_nothing_is_reproducible():
    assert seeds.operation_seed(None) is None
    assert seeds.draw("shuffle", None) != seeds.draw("shuffle", None)


def test_an_operations_own_seed_counts_beside_a_fixed_global_one():
    assert seeds.operation_seed(5) == seeds.operation_seed(5) == (87654321, 5)


def test_both_seeds_count():
    seeds.set_seed(7)
    assert seeds.operation_seed(5) == (7, 5)


def test_with_the_global_seed_alone_operations_are_numbered_in_order():
    seeds.set_seed(7)
    first = operations(4)
    assert len(set(first)) == 4
    seeds.set_seed(7)
    assert operations(4) == first
    seeds.set_seed(8)
    assert operations(4) != first


def test_setting_the_seed_restarts_every_sequence():
    seeds.set_seed(7)
    first = [seeds.draw("shuffle", (7, 1)) for _ in range(3)]
    assert len(set(first)) == 3
    seeds.set_seed(7)
    assert [seeds.draw("shuffle", (7, 1)) for _ in range(3)] == first


def test_kinds_lanes_and_seeds_have_sequences_of_their_own():
    draws = [
        seeds.draw("shuffle", (7, 1)),
        seeds.draw("uniform", (7, 1)),
        seeds.draw("shuffle", (7, 1), lane=1),
        seeds.draw("shuffle", (7, 2)),
        seeds.draw("shuffle", (8, 1)),
    ]
    assert len(set(draws)) == len(draws)


def test_a_draw_that_is_not_counted_does_not_move_the_sequence():
    assert seeds.draw("x", (7, 1), counted=False) == seeds.draw("x", (7, 1), counted=False)


def test_words_have_32_bits_and_use_them():
    seeds.set_seed(1)
    words = np.array([seeds.draw("x", (7, 1)) for _ in range(200)], np.uint64)
    assert words.max() < 2**32
    assert words.max() > 2**31
    assert len(np.unique(words)) == 400


@pytest.mark.parametrize("seed", [np.int64(7), 7 + (2**31 - 1)])
def test_a_seed_is_any_whole_number_cut_to_tensorflows_range(seed):
    assert seeds.operation_seed(seed) == (87654321, 7)


@pytest.mark.parametrize("seed", ["7", 7.5])
def test_a_seed_that_is_not_an_integer_is_a_type_error(seed):
    with pytest.raises(TypeError):
        seeds.set_seed(seed)


def call_seeds(seed=None, drawn=None):
    return seeds.CallSeeds(seed, Counter() if drawn is None else drawn)


def test_operations_in_a_function_are_known_by_their_place():
    call = call_seeds(7)
    first = [call.operation(None) for _ in range(2)]
    call.place = 0
    assert [call.operation(None) for _ in range(2)] == first
    assert first[0] != first[1]
    assert call.operation(5) == (7, 5)
    assert call_seeds().operation(5) == (87654321, 5)
    assert call_seeds().operation(None) is None


def test_each_operation_in_a_function_has_a_sequence_of_its_own():
    call = call_seeds(7)
    first = call.draw("uniform", call.operation(3))
    assert (
        call.draw("uniform", call.operation(3)) == first
    )  # as in TensorFlow: the same seeds, the same numbers
    call.place = 0
    assert call.draw("uniform", call.operation(3)) != first


def test_a_pass_restarts_the_sequences():
    drawn = Counter()
    first = call_seeds(7, drawn).draw("uniform", (7, 3))
    assert call_seeds(7, drawn).draw("uniform", (7, 3)) != first
    assert call_seeds(7).draw("uniform", (7, 3)) == first


def test_a_function_leaves_the_sequence_of_the_program_alone():
    seeds.set_seed(7)
    expected = operations(3)
    seeds.set_seed(7)
    seeds.calling.call = call_seeds(7)
    try:
        assert seeds.operation_seed(None) not in expected
        assert seeds.global_seed() == 7
    finally:
        seeds.calling.call = None
    assert operations(3) == expected
