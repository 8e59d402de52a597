"""Waiting for other threads and their results."""

import gc
import threading
import weakref
from concurrent.futures import CancelledError
from contextlib import suppress

import pytest

from evenfeed.core.concurrency.waiting import Bell, Pending

pytestmark = pytest.mark.timeout(20)


def test_a_ring_that_nobody_waited_for_is_kept():
    bell = Bell()
    bell.ring()
    bell.wait(1000)


def test_a_result_is_waited_for():
    pending = Pending()
    threading.Timer(0.05, pending.set_result, [7]).start()
    assert (pending.done(), pending.result(), pending.exception()) == (False, 7, None)
    assert pending.done()


def test_a_result_that_takes_too_long_is_a_timeout():
    with pytest.raises(TimeoutError):
        Pending().result(timeout=0.01)


def test_a_call_is_started_or_cancelled_but_never_both():
    begun, cancelled = Pending(), Pending()
    assert begun.begin()
    assert not begun.cancel()
    assert cancelled.cancel()
    assert not cancelled.begin()
    assert (begun.done(), cancelled.done()) == (False, True)
    with pytest.raises(CancelledError):
        cancelled.result()


def test_a_callback_runs_once_whether_added_before_or_after_the_end():
    told = []
    pending, cancelled = Pending(), Pending()
    pending.when_done(lambda: told.append("before"))
    pending.set_result(1)
    pending.when_done(lambda: told.append("after"))
    cancelled.when_done(lambda: told.append("cancelled"))
    cancelled.cancel()
    assert told == ["before", "after", "cancelled"]


def test_an_error_that_was_raised_is_not_held_by_its_own_frame():
    class BadError(Exception):
        pass

    pending = Pending()
    pending.set_exception(BadError())
    gone = weakref.ref(pending._error)
    gc.disable()
    try:
        with suppress(BadError):
            pending.result()
        del pending
        assert gone() is None  # without the garbage collector
    finally:
        gc.enable()
