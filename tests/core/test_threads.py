"""The thread pool."""

import gc
import os
import threading
import warnings
from concurrent.futures import CancelledError
from functools import partial

import pytest
from tests.processes import wait_until

from evenfeed.core import errors
from evenfeed.core.concurrency import threads as thread_pool
from evenfeed.core.concurrency.threads import BackgroundThreads, ThreadPool

pytestmark = pytest.mark.timeout(20)


def running(name):
    return [thread for thread in threading.enumerate() if thread.name.startswith(name)]


def test_calls_are_run_by_as_many_threads_as_are_needed_and_no_more():
    pool = ThreadPool(3, "pool-few")
    meeting = threading.Barrier(3)
    assert [pool.submit(int).result() for _ in range(5)] == [0] * 5
    few = len(running("pool-few"))
    results = [pool.submit(partial(meeting.wait, 10)) for _ in range(9)]
    assert sorted(result.result() for result in results) == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert (few, len(running("pool-few"))) == (1, 3)
    pool.close()
    wait_until(lambda: not running("pool-few"))


def test_an_error_is_raised_by_result():
    pool = ThreadPool(1, "pool-error")
    with pytest.raises(ZeroDivisionError):
        pool.submit(lambda: 1 // 0).result()
    assert pool.submit(int).result() == 0
    pool.close()


def test_calls_that_wait_when_the_pool_closes_are_cancelled_and_call_back():
    pool = ThreadPool(1, "pool-closed")
    begun, let_go = threading.Event(), threading.Event()
    first = pool.submit(lambda: begun.set() or let_go.wait(10))
    begun.wait()
    second = pool.submit(int)
    pool.close()
    with pytest.raises(CancelledError):
        second.result(10)
    let_go.set()
    assert first.result()
    with pytest.raises(errors.CancelledError, match="closed while it was read"):
        pool.submit(int)
    wait_until(lambda: not running("pool-closed"))


def test_a_pool_that_is_forgotten_ends_its_threads():
    pool = ThreadPool(2, "pool-forgotten")
    pool.submit(int).result()
    del pool
    gc.collect()
    wait_until(lambda: not running("pool-forgotten"))


def test_an_error_holds_nothing_but_its_own_frames():
    class Held:
        pass

    def fails(held):
        raise ValueError

    pool, held = ThreadPool(1, "pool-holding"), Held()
    pool.submit(partial(fails, held)).exception()
    gone = threading.Event()
    Held.__del__ = lambda _: gone.set()
    del held
    assert gone.wait(5)  # without the garbage collector
    pool.close()


def test_after_the_program_has_ended_submit_runs_the_call_itself(monkeypatch):
    threads = BackgroundThreads()
    threads.are_ending = True
    monkeypatch.setattr(thread_pool, "background", threads)
    pool = ThreadPool(2, "pool-ended")
    assert pool.submit(threading.current_thread).result() is threading.current_thread()
    assert isinstance(pool.submit(lambda: 1 // 0).exception(), ZeroDivisionError)


def test_a_fork_starts_its_own_threads():
    pool = ThreadPool(1, "pool-forked")
    pool.submit(int).result()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about forks in a process with threads
        pid = os.fork()
    if pid == 0:
        os._exit(0 if pool.submit(lambda: 7).result(timeout=10) == 7 else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    pool.close()
