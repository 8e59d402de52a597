"""Which programs of several threads wait for others, and that they lose no assignment."""

import threading
from contextlib import contextmanager
from multiprocessing.pool import ThreadPool

import jax
import pytest
from tests.mirroring import mirrored

import evenfeed as tf
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


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize(
    ("synchronization", "aggregation", "added"),
    [
        ("AUTO", "SUM", 2),
        ("AUTO", "ONLY_FIRST_REPLICA", 1),
        ("ON_READ", "SUM", 2),
    ],
)
def test_steps_of_several_threads_lose_no_assignment(compiled, synchronization, aggregation, added):
    strategy = mirrored(2)
    with strategy.scope():
        total = tf.Variable(
            0.0,
            synchronization=tf.VariableSynchronization[synchronization],
            aggregation=tf.VariableAggregation[aggregation],
        )

    def step(x):
        strategy.run(total.assign_add, args=(x,))

    _called_by_threads(tf.function(step) if compiled else step)
    assert float(total.numpy()) == 200 * added


def test_steps_of_several_threads_that_draw_lose_no_assignment():
    strategy = mirrored(2)
    with strategy.scope():
        total = tf.Variable(0.0, aggregation=tf.VariableAggregation.SUM)

    def add(x):
        total.assign_add(x + 0.0 * tf.random.uniform([]))

    _called_by_threads(tf.function(lambda x: strategy.run(add, args=(x,))))
    assert float(total.numpy()) == 400


def test_functions_of_several_threads_lose_no_assignment():
    total = tf.Variable(0.0)

    @tf.function
    def add(x):
        total.assign_add(x)

    _called_by_threads(add)
    assert float(total.numpy()) == 200


def _called_by_threads(function):
    """Call a function 200 times, from eight threads at once."""
    one = tf.constant(1.0)
    pool = ThreadPool(8)
    pool.map_async(lambda _: function(one), range(200), chunksize=1).get(timeout=60)
    pool.terminate()
