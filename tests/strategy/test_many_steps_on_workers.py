"""Many steps in one program on two workers, in real processes: the same as one step after the other."""

import numpy as np
import pytest
from tests.strategy.starting import seen_by_workers

pytestmark = pytest.mark.slow


def seen():
    found = seen_by_workers("many_steps_workers.py")
    return [found[worker] for worker in (0, 1)]


# The steps of each program, four at a time, and the number in those of a loop after the second step.
RUNS = {
    "by row": ([4, 4, 3], 9),
    "all rows": ([4, 4, 4, 4, 4, 2], 20),
    "lanes": ([4, 4, 3], 9),
    "function": ([4, 3], 5),
    "mesh": ([4, 4, 3], 9),
}


@pytest.mark.parametrize("way", [*RUNS, "without positions"])
def test_steps_in_one_program_give_the_results_of_single_steps(way):
    one, other = (worker[way] for worker in seen())
    assert one["runs"] == other["runs"]
    assert one["loop"] == other["loop"]
    for own in (one, other):
        assert [own["losses"], own["weights"], own["loop"][2]] == [True] * 3
        if way in RUNS:  # else a state may be said in two ways
            assert (own["runs"], own["loop"][0]) == RUNS[way]
            assert own["states"]


def test_explain_says_how_many_steps_go_to_the_devices_together():
    line = "in one program: up to 128 steps, copied together"
    for worker in seen():
        assert [worker[way]["explained"] for way in RUNS] == [[line]] * len(RUNS)
        assert worker["without positions"]["explained"] == []


def test_the_loop_of_tensorflow_1_runs_in_one_program():
    assert [worker["tensorflow 1"] for worker in seen()] == [[sum(range(32, 40)), 5]] * 2


def test_the_executions_of_keras_have_the_losses_of_single_steps():
    for worker in seen():
        single, together = worker["keras"]
        assert (single[2], together[2]) == (0, 21)
        for one, many in zip(single[:2], together[:2], strict=True):
            np.testing.assert_allclose(many, one, rtol=1e-5, atol=1e-6)


def test_steps_that_a_worker_has_read_ahead_come_first():
    sums = [sum(range(start, start + 8)) for start in range(0, 64, 8)]
    assert [worker["after single steps"] for worker in seen()] == [sums] * 2


def test_an_error_of_one_worker_is_an_error_of_all():
    assert [worker["failing"] for worker in seen()] == [
        [0, "InvalidArgumentError"],
        [0, "AbortedError"],
    ]
