"""Programs that start processes: the processes find their function, and none outlives the program."""

import os
import signal
import subprocess
import sys
import textwrap
import time

import pytest
from tests.processes import alive, children_of, wait_until

pytestmark = pytest.mark.slow

HEAD = "import evenfeed as tf, time, os, sys, signal\nD = tf.data.Dataset\n"
STEPS = """
import os, sys, time
def tenfold(x):
    return x * 10
def process(x):
    return x * 0 + os.getpid()
def has_jax(x):
    return x * 0 + ("jax" in sys.modules)
def endless_from_1(x):
    while x > 0:
        time.sleep(0.01)
    return x
"""


@pytest.fixture(autouse=True)
def no_named_memory():
    before = set(os.listdir("/dev/shm"))
    yield
    assert set(os.listdir("/dev/shm")) <= before


@pytest.fixture
def program(tmp_path):
    """Return a function that starts a program next to a module `steps`."""
    (tmp_path / "steps.py").write_text(STEPS)
    started = []

    def start(text, *options, name="train.py", **how):
        (tmp_path / name).write_text(HEAD + textwrap.dedent(text))
        command = [sys.executable, *(options or (name,))]
        begun = subprocess.Popen(
            command,
            cwd=tmp_path,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)},
            **how,
        )
        started.append(begun)
        return begun

    yield start
    for begun in started:
        begun.kill()
        begun.communicate()


def output(begun, code=0):
    out, err = begun.communicate(timeout=60)
    assert begun.returncode == code, err
    return out.splitlines(), err


def test_a_function_of_the_program_itself_needs_no_guard(program):
    text = """
    from typing import NamedTuple
    print("loaded as", __name__)
    class Pair(NamedTuple):
        a: int
        b: int
    class Odd(Exception):
        pass
    def decode(x):
        if x == 3:
            raise Odd("three")
        return Pair(x, x + more)
    more = 1
    spec = Pair(tf.TensorSpec([], tf.int64), tf.TensorSpec([], tf.int64))
    iterator = iter(D.range(4).map(decode, 1, processes=True, output_signature=spec))
    print([next(iterator) for _ in range(3)][2] == Pair(2, 3))
    try:
        next(iterator)
    except Odd as error:
        print("Odd", error)
    print([int(x) for x in D.range(3).map(lambda x: x + more, 2, processes=True)])
    """
    out, err = output(program(text))
    assert out == ["loaded as __main__", "True", "Odd three", "[1, 2, 3]"]
    assert err == ""


LOCKED = """
    import threading
    lock = threading.Lock()
    def decode(x):
        with lock:
            return x + 1
"""


def test_a_function_that_uses_what_cannot_be_sent_is_found_below_a_guard(program):
    text = (
        LOCKED
        + """
    if __name__ == "__main__":
        print([int(x) for x in D.range(4).map(decode, 2, processes=True)])
    """
    )
    assert output(program(text)) == (["[1, 2, 3, 4]"], "")


def test_a_program_without_a_guard_is_told(program):
    text = (
        LOCKED
        + """
    print([int(x) for x in D.range(4).map(decode, 2, processes=True)])
    """
    )
    out, err = output(program(text), code=1)
    assert out == []
    assert err.count("Traceback (most recent call last):") == 2  # here and there
    assert "FailedPreconditionError: The program failed when another process loaded it" in err
    assert 'move the program\'s top-level code below `if __name__ == "__main__":`' in err
    assert "at:  train.py:10" in err


def test_a_program_needs_no_guard_for_functions_of_modules(program):
    text = """
    import jax, steps
    print([int(x) for x in D.range(4).map(steps.tenfold, 2, processes=True)])
    print({int(x) for x in D.range(4).map(steps.has_jax, 2, vectorize=False, processes=True)})
    """
    out, err = output(program(text))
    assert out == ["[0, 10, 20, 30]", "{0}"]
    assert err == ""


def test_a_module_that_runs_as_a_program_is_found(program):
    text = """
    def decode(x):
        return x + 1
    if __name__ == "__main__":
        print([int(x) for x in D.range(3).map(decode, 2, processes=True)])
    """
    assert output(program(text, "-m", "train"))[0] == ["[1, 2, 3]"]


@pytest.mark.parametrize("way", ["-c", "-"])
def test_a_program_without_a_file_sends_its_functions(program, way):
    text = (
        HEAD
        + "def decode(x):\n    return x + 1\n\n"
        + "import steps, threading\n"
        + "print([int(x) for x in D.range(2).map(steps.tenfold, 2, processes=True)])\n"
        + "print([int(x) for x in D.range(3).map(decode, processes=True)])\n"
        + "lock = threading.Lock()\n"
        + "D.range(3).map(lambda x: (x, lock)[0], processes=True)"
    )
    if way == "-c":
        begun = program("", "-c", text)
    else:
        begun = program("", "-", stdin=subprocess.PIPE)
        begun.stdin.write(text)
        begun.stdin.close()
        begun.stdin = None
    out, err = output(begun, code=1)
    assert out == ["[0, 10]", "[1, 2, 3]"]
    assert "<lambda> cannot be sent to another process: cannot pickle '_thread.lock'" in err
    assert "It uses the variable lock, of type _thread.lock" in err


WORKING = """
import steps
iterator = iter(D.range(9).map(steps.endless_from_1, 2, processes=True,
                               output_signature=tf.TensorSpec([], tf.int64)))
next(iterator)
print("ready", flush=True)
"""


def begun_and_children(program, text, count=2):
    begun = program(text)
    assert begun.stdout.readline() == "ready\n", begun.communicate()[1]
    wait_until(lambda: len(children_of(begun.pid)) == count)
    return begun, children_of(begun.pid)


def test_a_program_that_ends_takes_its_processes_with_it(program):
    begun, children = begun_and_children(program, WORKING + "time.sleep(0.5)")
    assert output(begun) == ([], "")
    wait_until(lambda: not alive(children), 1)


@pytest.mark.parametrize("how", ["SIGKILL", "SIGTERM"])
def test_a_program_that_is_killed_takes_its_processes_with_it(program, how):
    begun, children = begun_and_children(program, WORKING + "time.sleep(60)")
    os.kill(begun.pid, signal.Signals[how])
    wait_until(lambda: not alive(children), 3)
    assert begun.communicate(timeout=10)[1] == ""


def test_a_fork_that_lives_on_does_not_keep_the_processes(program):
    text = WORKING + "if os.fork() == 0:\n    time.sleep(30)\n    os._exit(0)\ntime.sleep(60)"
    begun, children = begun_and_children(program, text, count=3)
    begun.kill()
    [fork] = [pid for pid in children if b"train.py" in _command(pid)]
    rest = [pid for pid in children if pid != fork]
    wait_until(lambda: not alive(rest), 5)
    os.kill(fork, signal.SIGKILL)


def _command(pid):
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        return file.read()


def test_ctrl_c_is_for_the_program_alone(program):
    text = WORKING + "next(iterator)"
    begun, children = begun_and_children(program, text)
    time.sleep(0.5)  # until it waits for the second element
    os.killpg(begun.pid, signal.SIGINT)
    _, err = output(begun, code=-signal.SIGINT)
    assert err.count("Traceback") == 1
    assert "while waiting for element 1 of endless_from_1, asked for at train.py:5" in err
    wait_until(lambda: not alive(children), 3)


def test_ctrl_c_while_processes_start_is_for_the_program_alone(program):
    text = """
    import steps
    print("ready", flush=True)
    spec = tf.TensorSpec([], tf.int64)
    next(iter(D.range(9).map(steps.endless_from_1, 2, processes=True, output_signature=spec).skip(1)))
    """
    begun, children = begun_and_children(program, text)
    os.killpg(begun.pid, signal.SIGINT)
    _, err = output(begun, code=-signal.SIGINT)
    assert err.count("KeyboardInterrupt") == 1, err
    wait_until(lambda: not alive(children), 3)


def test_nothing_is_lost_to_ctrl_c(program):
    text = """
    import steps
    iterator, found = iter(D.range(300).map(steps.tenfold, 2, processes=True)), []
    next(iterator)
    words = ["ready"]
    while True:
        try:
            if words:
                print(words.pop(), flush=True)  # here, because Ctrl-C may come as soon as it is read
            found.append(int(next(iterator)))
            time.sleep(0.003)
        except KeyboardInterrupt:
            print("heard")
        except StopIteration:
            break
    print(found == list(range(10, 3000, 10)))
    """
    begun, _ = begun_and_children(program, text)
    os.killpg(begun.pid, signal.SIGINT)
    out, err = output(begun)
    assert out == ["heard", "True"]
    assert err == ""


def test_a_daemon_whose_streams_are_closed_can_use_processes(tmp_path):
    program = tmp_path / "daemon.py"
    program.write_text(
        "import evenfeed as tf\n"
        "found = [int(x) for x in tf.data.Dataset.range(3).map(lambda x: x + 1, 2, processes=True)]\n"
        "open('found', 'w').write(str(found))\n"
    )
    command = ["/bin/sh", "-c", 'exec "$0" "$@" <&- >&- 2>&-', sys.executable, program.name]
    subprocess.run(command, cwd=tmp_path, timeout=60, check=True)
    assert (tmp_path / "found").read_text() == "[1, 2, 3]"
