"""Replicas in threads: the order in which they run, their meetings, and how they end."""

import contextlib
import signal
import subprocess
import sys
import textwrap
import threading
import time

import jax
import jax.numpy as jnp
import pytest
from tests.mirroring import context, each, mirrored, number, parts, replica_threads

import evenfeed as tf
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.replicas.run import replica_threads as threads


def total(value):
    return context().all_reduce("SUM", jnp.asarray(value))


def fails_in(strategy, fn, kind):
    """Run code that must fail, and check that no thread is left and the strategy still works."""
    with pytest.raises(kind) as caught:
        strategy.run(fn)
    assert replica_threads() == []
    count = strategy.num_replicas_in_sync
    assert [int(p) for p in parts(strategy, strategy.run(lambda: total(1)))] == [count] * count
    return caught.value


@pytest.mark.parametrize("count", [2, 3, 8])
def test_replicas_run_one_after_the_other_from_meeting_to_meeting(count):
    said = []

    def step():
        said.append(("before", number()))
        total(1)
        said.append(("between", number()))
        total(1)
        said.append(("after", number()))

    mirrored(count).run(step)
    assert said == [(when, r) for when in ("before", "between", "after") for r in range(count)]


def test_replica_0_runs_in_the_thread_of_the_caller():
    threads = parts(strategy := mirrored(2), strategy.run(lambda: threading.current_thread().name))
    assert threads == [threading.current_thread().name, "evenfeed-replica-1"]
    assert replica_threads() == []


@pytest.mark.parametrize("bad", [0, 1, 2])
@pytest.mark.parametrize("when", ["before", "between", "after"])
@pytest.mark.parametrize("kind", [KeyError, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_an_error_of_one_replica_reaches_the_caller_as_itself(bad, when, kind):
    error = kind("mine")

    def step():
        for now in ("before", "between", "after"):
            if number() == bad and now == when:
                raise error
            if now != "after":
                total(1)

    raised = fails_in(mirrored(3), step, kind)
    assert raised is error
    assert raised.__notes__ == [f"while replica {bad} of 3 ran its function."]


def test_the_first_of_several_errors_is_raised():
    error = fails_in(mirrored(3), lambda: [][number()], IndexError)
    assert error.__notes__ == ["while replica 0 of 3 ran its function."]


def test_an_error_has_the_line_of_the_replicas_function():
    def step():
        total(1)
        return 1 // (1 - number())

    error = fails_in(mirrored(2), step, ZeroDivisionError)
    lines = []
    entry = error.__traceback__
    while entry is not None:
        lines.append(entry.tb_frame.f_code.co_name)
        entry = entry.tb_next
    assert lines[-1] == "step"


def test_an_error_in_merge_fn_is_raised_once():
    calls = []

    def merge_fn(strategy):
        calls.append(1)
        raise LookupError("merged")

    error = fails_in(mirrored(3), lambda: context().merge_call(merge_fn), LookupError)
    assert calls == [1]
    assert str(error) == "merged"
    assert len(error.__notes__) == 1


def test_a_user_who_catches_everything_does_not_keep_a_replica_alive():
    def step():
        if number() == 1:
            raise KeyError("mine")
        with contextlib.suppress(Exception):
            total(1)

    fails_in(mirrored(2), step, KeyError)


def test_a_replica_that_meets_in_its_finally_ends():
    def step():
        try:
            if number() == 0:
                raise KeyError("mine")
            total(1)
        finally:
            total(2)

    fails_in(mirrored(2), step, KeyError)


def test_replicas_that_meet_for_different_things_are_told_so():
    def step():
        if number() == 0:
            return total(jnp.float32(1))
        return context().merge_call(lambda strategy: 1)

    text = str(fails_in(mirrored(2), step, RuntimeError))
    assert text.startswith(
        "The replicas do not meet at the same collective: replica 0 at all_reduce of float32[] (tests"
    )
    assert "; replica 1 at merge_call (tests" in text
    assert "test_replica_threads.py:" in text
    assert text.endswith("fix: make every replica call the same collectives in the same order.")


def test_replicas_that_reduce_different_shapes_are_told_so():
    unlike = fails_in(
        mirrored(2), lambda: total(jnp.zeros(number() + 1, "f4")), InvalidArgumentError
    )
    assert "replica 0 at all_reduce of float32[1]" in str(unlike)
    assert "replica 1 at all_reduce of float32[2]" in str(unlike)
    assert "fix: pass tensors of one dtype and shape" in str(unlike)


@pytest.mark.parametrize(
    ("shape", "dtype"), [((2, 2), "f4"), ((3,), "f4"), ((2, 3), "i4")], ids=str
)
def test_replicas_that_gather_what_does_not_go_together_are_told_so(shape, dtype):
    def step():
        own = jnp.zeros((1, 3), "f4") if number() == 0 else jnp.zeros(shape, dtype)
        return context().all_gather(own, 0)

    text = str(fails_in(mirrored(2), step, InvalidArgumentError))
    assert "replica 0 at all_gather of float32[0, 3] along [-2]" in text


@pytest.mark.parametrize("lazy", [0, 1, 2])
def test_a_replica_that_returns_without_a_meeting_is_named(lazy):
    def step():
        if number() != lazy:
            total(jnp.int32(1))

    text = str(fails_in(mirrored(3), step, RuntimeError))
    waiting = 1 if lazy == 0 else 0
    assert text.startswith(
        f"Replica {waiting} waits at all_reduce of int32[], but replica {lazy} has returned without calling it."
    )
    assert "  at:  tests" in text


def test_a_thread_that_cannot_start_ends_the_others(monkeypatch):
    start = threading.Thread.start

    def starting(thread):
        if thread.name == "evenfeed-replica-2":
            raise RuntimeError("can't start new thread")
        start(thread)

    strategy = mirrored(3)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", starting)
        with pytest.raises(RuntimeError, match="can't start new thread"):
            strategy.run(lambda: total(1))
    assert replica_threads() == []


def test_a_thread_of_the_users_own_inside_of_a_replica_is_in_no_replica():
    def step():
        seen = []
        thread = threading.Thread(
            target=lambda: seen.append(tf.distribute.in_cross_replica_context())
        )
        thread.start()
        thread.join()
        return seen[0]

    outside = []
    thread = threading.Thread(
        target=lambda: outside.append(tf.distribute.in_cross_replica_context())
    )
    thread.start()
    thread.join()
    strategy = mirrored(2)
    assert parts(strategy, strategy.run(step)) == outside * 2


def test_run_and_scope_inside_of_run_are_refused():
    strategy = mirrored(2)
    with pytest.raises(RuntimeError, match="run works across replicas"):
        strategy.run(lambda: strategy.run(lambda: 1))
    with pytest.raises(RuntimeError, match=r"scope\(\) must not be entered inside run"):
        strategy.run(lambda: strategy.scope().__enter__())
    assert replica_threads() == []


def test_a_run_inside_of_merge_call_works():
    strategy = mirrored(2)

    def merge_fn(strategy):
        return strategy.run(lambda: total(2))

    assert [int(p) for p in parts(strategy, strategy.run(lambda: context().merge_call(merge_fn)))] == [4, 4]  # fmt: skip


@pytest.mark.parametrize("compiled", [False, True])
def test_runs_of_several_threads_do_not_mix(compiled):
    strategy = mirrored(2)
    wrong = []

    def step(x):
        y = context().all_reduce("SUM", x)
        inner = jax.jit(lambda a: context().all_reduce("SUM", a))
        for _ in range(3):
            y = inner(y) if not compiled else context().all_reduce("SUM", y)
        return y

    fn = tf.function(lambda x: strategy.run(step, args=(x,))) if compiled else None

    def work(mine):
        value = each(strategy, lambda r: jnp.float32(mine * (r + 1)))
        for _ in range(10):
            result = fn(value) if compiled else strategy.run(step, args=(value,))
            found = [float(p) for p in parts(strategy, result)]
            if found != [mine * 3.0 * 8] * 2:
                wrong.append((mine, found))

    threads = [threading.Thread(target=work, args=(mine,), daemon=True) for mine in (1, 10, 100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads), "they wait for one another"
    assert not wrong


def _process(body, *, interrupt_after_line=None, timeout=60):
    """Run a program; send it Ctrl-C when it prints a line."""
    program = textwrap.dedent("""
        import time, jax, jax.numpy as jnp, evenfeed as tf
        cpu = tf.config.list_physical_devices("CPU")[0]
        tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
        strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        context = tf.distribute.get_replica_context
    """) + textwrap.dedent(body)
    process = subprocess.Popen(
        [sys.executable, "-u", "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        seen = ""
        if interrupt_after_line is not None:
            while interrupt_after_line not in seen:
                line = process.stdout.readline()
                assert line, process.stderr.read()
                seen += line
            time.sleep(0.3)
            process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=timeout)
    finally:
        process.kill()
    return process.returncode, seen + out, err


@pytest.mark.slow
@pytest.mark.parametrize("who", [0, 1])
def test_ctrl_c_ends_a_run_in_users_code_and_in_a_wait(who):
    """Replica 0 is the main thread: the signal arrives in user code, or while it waits for replica 1."""
    code, out, err = _process(
        f"""
        def step():
            if context().replica_id_in_sync_group == {who}:
                print("sleeping", flush=True)
                for _ in range(20): time.sleep(0.1)
            return context().all_reduce("SUM", 1.0)
        try:
            strategy.run(step)
        except KeyboardInterrupt:
            print("interrupted")
        print([float(part) for part in strategy.run(lambda: context().all_reduce("SUM", 1.0)).values])
        """,
        interrupt_after_line="sleeping",
    )
    assert (code, out) == (0, "sleeping\ninterrupted\n[2.0, 2.0]\n"), err


@pytest.mark.slow
def test_ctrl_c_does_not_wait_for_ever_for_a_replica_that_meets_nobody():
    begun = time.monotonic()
    code, out, err = _process(
        """
        def step():
            if context().replica_id_in_sync_group == 1:
                print("sleeping", flush=True)
                time.sleep(1000)
        try:
            strategy.run(step)
        except KeyboardInterrupt as error:
            print(error.__notes__[-1])
        """,
        interrupt_after_line="sleeping",
    )
    assert code == 0, err
    assert out.endswith("These replicas run on until they next meet the others: [1].\n")
    assert time.monotonic() - begun < 45


@pytest.mark.slow
def test_python_ends_after_an_error_in_a_run():
    code, _, err = _process("strategy.run(lambda: [][context().replica_id_in_sync_group])")
    assert code == 1
    assert err.rstrip().endswith(
        "IndexError: list index out of range\nwhile replica 0 of 2 ran its function."
    )


def test_a_crew_keeps_no_error_alive():
    strategy = mirrored(2)
    with pytest.raises(KeyError) as caught:
        strategy.run(lambda: {}[number()])
    frames = [entry.frame.f_locals.get("self") for entry in caught.traceback]
    crews = [found for found in frames if isinstance(found, threads.ReplicaThreads)]
    assert crews
    assert not any(value is caught.value for value in vars(crews[0])["_failed"])
