"""Background threads, and how programs with running threads exit."""

import atexit
import logging
import re
import signal
import subprocess
import sys
import textwrap
import threading
import time
from types import SimpleNamespace

import pytest
from tests.processes import wait_until

from evenfeed.core.concurrency import threads as background
from evenfeed.core.concurrency.threads import BackgroundThreads


@pytest.fixture
def threads(monkeypatch):
    monkeypatch.setattr(atexit, "register", lambda _: None)
    monkeypatch.setattr(background, "_keep_from_aborting", lambda: None)
    return BackgroundThreads()


def test_threads_are_told_to_stop_and_waited_for(threads):
    stop, seen = threading.Event(), []

    def work():
        stop.wait()
        time.sleep(0.1)
        seen.append("stopped")

    threads.thread(work, "one", stop.set).start()
    threads.afterwards(lambda: seen.append("afterwards"))
    threads.end()
    assert seen == ["stopped", "afterwards"]
    assert threads.are_ending


def test_a_thread_that_was_started_meanwhile_is_told_too(threads):
    first, second = threading.Event(), threading.Event()

    def work():
        first.wait()
        inner = threads.thread(second.wait, "inner", second.set)
        inner.start()
        inner.join()

    threads.thread(work, "outer", first.set).start()
    begin = time.monotonic()
    threads.end()
    assert second.is_set()
    assert time.monotonic() - begin < background._SECONDS


def test_a_stop_that_fails_does_not_keep_the_others_running(threads):
    stop = threading.Event()
    threads.thread(stop.wait, "bad", lambda: 1 / 0).start()
    threads.thread(stop.wait, "good", stop.set).start()
    threads.end()
    assert stop.is_set()


def test_a_thread_that_keeps_running_is_named_with_its_line(threads, monkeypatch, caplog):
    monkeypatch.setattr(background, "_SECONDS", 0.05)
    stop = threading.Event()

    def stubborn():
        stop.wait()

    thread = threads.thread(stubborn, "evenfeed-stubborn", lambda: None)
    thread.start()
    wait_until(lambda: stubborn.__code__ in _codes(thread))
    with caplog.at_level(logging.WARNING, "evenfeed"):
        threads.end()
    stop.set()
    line = stubborn.__code__.co_firstlineno + 1
    named = rf"thread evenfeed-stubborn \(at .*test_background\.py:{line}\) did not stop within"
    assert re.search(named, caplog.text)


def _codes(thread):
    frame = sys._current_frames().get(thread.ident)
    while frame is not None:
        yield frame.f_code
        frame = frame.f_back


def test_threads_that_ended_are_forgotten(threads):
    thread = threads.thread(lambda: None, "short", lambda: None)
    thread.start()
    thread.join()
    assert not threads._running


def test_the_threads_end_before_jax_does_however_late_it_was_loaded(monkeypatch):
    order, loaded = [], {}
    monkeypatch.setattr(atexit, "register", order.append)
    monkeypatch.setattr(atexit, "unregister", lambda _: None)
    monkeypatch.setattr(background, "sys", SimpleNamespace(modules=loaded))
    threads = BackgroundThreads()
    threads.stand_before_jax()
    loaded["jax"] = object()
    order.append("JAX's own")
    threads.stand_before_jax()
    threads.stand_before_jax()
    assert order == [threads.end, "JAX's own", threads.end]


# --- programs ---------------------------------------------------------------------------------

BEGIN = """
import atexit, os, signal, sys, threading, time
import numpy as np
import evenfeed as tf

Dataset = tf.data.Dataset
file = open(sys.argv[1], "w")
file.write("written")

def rows():
    yield 1
    time.sleep(1000)

def waits(x):
    if x > 3:
        time.sleep(1000)
    return x

def quick(x):
    return tf.numpy_function(np.square, [x], tf.int64)

def plain(function):
    return lambda x: tf.numpy_function(function, [x], tf.int64)

INT = tf.TensorSpec([], tf.int64)
"""


def ended(tmp_path, body):
    """Run a program; return its exit code, its output on both streams, and how long its exit took."""
    script, file = tmp_path / "script.py", tmp_path / "file"
    script.write_text(BEGIN + textwrap.dedent(body))
    done = subprocess.run(
        [sys.executable, "script.py", str(file)],
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
        cwd=tmp_path,
    )
    assert file.read_text() == "written", done.stderr
    return done.returncode, done.stdout, done.stderr


ITERATORS = {
    "prefetch": "Dataset.range(10**6).map(quick).prefetch(8)",
    "threads": "Dataset.range(10**6).map(quick, num_parallel_calls=4)",
    "both": "Dataset.range(10**6).map(quick, num_parallel_calls=4).prefetch(8).batch(2).prefetch(2)",
    "traced": "Dataset.range(10**6).map(lambda x: tf.reduce_sum(tf.ones([50, 50]) * tf.cast(x, tf.float32))).prefetch(8)",
    "distributed": "tf.distribute.MirroredStrategy().experimental_distribute_dataset("
    "Dataset.range(10**6).map(lambda x: x * 2).batch(4))",
}

ENDS = {
    "end": ("pass", 0),
    "exit": ("sys.exit(3)", 3),
    "error": ("raise ValueError('oops')", 1),
    "interrupt": ("os.kill(os.getpid(), signal.SIGINT); time.sleep(10)", -signal.SIGINT),
}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "end"),
    [
        *((name, "exit") for name in ITERATORS),
        *(("distributed", end) for end in ENDS if end != "exit"),
    ],
)
def test_a_program_ends_as_it_wants_while_its_iterator_reads_ahead(tmp_path, name, end):
    last, wanted = ENDS[end]
    code, _, stderr = ended(tmp_path, f"it = iter({ITERATORS[name]})\nnext(it)\n{last}\n")
    assert code == wanted, stderr
    assert "did not stop" not in stderr


STUCK = {
    "evenfeed-prefetch": "Dataset.from_generator(rows, output_signature=INT).prefetch(4)",
    "evenfeed-map_": "Dataset.range(100).map(plain(waits), num_parallel_calls=8)",
    "evenfeed-feed": "tf.distribute.MirroredStrategy(['CPU:0']).experimental_distribute_dataset("
    "Dataset.from_generator(rows, output_signature=INT).batch(1))",
}


@pytest.mark.slow
@pytest.mark.parametrize("thread", STUCK)
def test_a_thread_stuck_in_a_user_function_is_named_and_left_behind(tmp_path, thread):
    body = f"""
        it = iter({STUCK[thread]})
        next(it)
        time.sleep(0.5)
        sys.exit(3)
        """
    code, _, stderr = ended(tmp_path, body)
    assert code == 3, stderr
    lines = [number for number, line in enumerate(BEGIN.split("\n"), 1) if "sleep" in line]
    line = lines[0 if "rows" in STUCK[thread] else 1]
    assert re.search(rf"thread {thread}\S* \(at script.py:{line}\)", stderr), stderr
    assert "Traceback" not in stderr


@pytest.mark.slow
def test_a_process_stuck_in_a_user_function_is_ended(tmp_path):
    body = """
        if __name__ == "__main__":
            it = iter(Dataset.range(100).map(waits, 2, processes=True))
            next(it)
            time.sleep(0.5)
            sys.exit(3)
        """
    code, _, stderr = ended(tmp_path, body)
    assert (code, stderr) == (3, "")


@pytest.mark.slow
def test_a_thread_that_comes_back_from_native_code_too_late_does_not_abort_the_process(tmp_path):
    body = """
        import ctypes
        from evenfeed.cluster import jax_private
        from evenfeed.cluster.launching import environments

        address = environments(1)[0]["TF_CONFIG"].partition('["')[2].partition('"]')[0]
        service = jax_private.runtime_service(address, 1)
        client = jax_private.runtime_client(address, 0, 10)
        client.connect()
        for kept in (service, client):  # until the very end: JAX aborts if its service is deleted first
            ctypes.pythonapi.Py_IncRef(ctypes.py_object(kept))

        class Slow:
            def __del__(self, sleep=time.sleep):
                sleep(4)  # so that Python is still shutting down when the call below returns

        def native(x):
            if x > 0:
                client.blocking_key_value_get("nobody writes it", 4000)
            return x

        slow = Slow()
        it = iter(Dataset.range(5).map(plain(native)).prefetch(1))
        next(it)
        print("first", flush=True)
        time.sleep(0.5)
        sys.exit(3)
        """
    code, stdout, stderr = ended(tmp_path, body)
    assert (code, stdout) == (3, "first\n"), stderr
    assert "thread evenfeed-prefetch (at script.py" in stderr


@pytest.mark.slow
def test_a_user_thread_keeps_reading_after_the_main_thread_has_ended(tmp_path):
    body = """
        def read():
            print(sum(1 for _ in Dataset.range(40).map(quick, num_parallel_calls=4).prefetch(3)))

        threading.Thread(target=read).start()
        """
    assert ended(tmp_path, body) == (0, "40\n", "")


@pytest.mark.slow
def test_functions_that_are_called_at_exit_may_read_datasets(tmp_path):
    body = """
        def begun():
            return iter(Dataset.range(100).map(quick, num_parallel_calls=4).prefetch(3))

        atexit.register(lambda: print("before", sum(1 for _ in first), sum(1 for _ in begun())))
        first, second = begun(), begun()
        next(first), next(second)
        atexit.register(lambda: print("behind", sum(1 for _ in second)))
        sys.exit(3)
        """
    assert ended(tmp_path, body) == (3, "behind 99\nbefore 99 100\n", "")
