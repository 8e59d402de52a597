"""Which programs wait for others that are compiled or launched."""

import threading
from contextlib import contextmanager

import jax
import pytest

from evenfeed.replicas.launch_turns import Launch

SECONDS = 20


class _Slow:
    """A program whose next run takes until it is let go, once it is told to."""

    def __init__(self):
        self.is_slow = False
        self.began, self.may_end = threading.Event(), threading.Event()

    def __call__(self, x):
        if self.is_slow:
            self.began.set()
            assert self.may_end.wait(SECONDS)
        return x


@contextmanager
def _running(function, *args):
    thread = threading.Thread(target=function, args=args)
    thread.start()
    yield thread
    thread.join(SECONDS)


def _compiled():
    launch = Launch(lambda x: x)
    launch(1)
    return launch


@contextmanager
def _compiling(launch, slow):
    slow.is_slow = True
    with _running(launch.assigning, launch, 1):
        assert slow.began.wait(SECONDS)
        yield
        slow.may_end.set()


def _ends_soon(function, *args):
    thread = threading.Thread(target=function, args=args)
    thread.start()
    thread.join(3)
    return not thread.is_alive()


@pytest.mark.parametrize("was_traced", [False, True])
def test_compiled_programs_run_while_one_that_assigns_is_compiled(was_traced):
    free, launch = _compiled(), Launch(slow := _Slow())
    if was_traced:
        jax.make_jaxpr(launch)(1)
    with _compiling(launch, slow):
        ended = _ends_soon(free, 2)
    assert ended


def test_a_program_that_waits_for_its_turn_to_assign_stops_no_other():
    free, waiting, launch = _compiled(), _compiled(), Launch(slow := _Slow())
    with _compiling(launch, slow), _running(waiting.assigning, waiting, 1) as thread:
        thread.join(0.2)  # until it waits
        assert thread.is_alive()
        ended = _ends_soon(free, 2)
        slow.may_end.set()
    assert ended
