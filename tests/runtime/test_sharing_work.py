from threading import Barrier, get_ident

import pytest

from evenfeed.runtime.functions.sharing_work import done_by_threads


def test_results_come_in_order_whichever_thread_is_faster():
    assert done_by_threads(lambda start: start * start, range(0, 100, 7), 4) == [
        start * start for start in range(0, 100, 7)
    ]


def test_threads_work_at_the_same_time():
    both = Barrier(2)

    def compute(_):
        both.wait(30)
        return get_ident()

    assert len(set(done_by_threads(compute, range(2), 2))) == 2


def test_an_error_in_any_thread_is_raised_and_ends_the_rest():
    both, seen = Barrier(2), []

    def compute(start):
        seen.append(start)
        if start < 2:
            both.wait(30)
            raise ValueError(f"piece {start}")
        return start

    with pytest.raises(ValueError, match="piece"):
        done_by_threads(compute, range(9), 2)
    assert sorted(seen) == [0, 1]


def test_one_thread_is_the_callers_own():
    assert set(done_by_threads(lambda _: get_ident(), range(3), 1)) == {get_ident()}
