import functools
import pickle
import resource
import sys
from threading import Lock
from types import ModuleType

import numpy as np
import pytest
from tests import chores

import evenfeed as tf
from evenfeed.errors import FailedPreconditionError, InvalidArgumentError, UnimplementedError
from evenfeed.runtime.processes.pickling import pickled_function
from evenfeed.runtime.processes.portable import (
    LOADING_MAIN,
    check_portable,
    refuse_while_loading_main,
)


class Adds:
    def __init__(self, number):
        self.number = number

    def __call__(self, x):
        return x + self.number

    def more(self, x):
        return x + self.number + 1


@pytest.mark.parametrize(
    "function",
    [
        chores.tenfold,
        functools.partial(chores.killed_once, "a mark"),
        functools.partial(np.add, np.ones(1000)),
        Adds(1),
        Adds(1).more,
        abs,
        np.square,
    ],
    ids=[
        "a function",
        "a partial",
        "a partial of a ufunc",
        "an object",
        "a method",
        "built in",
        "a ufunc",
    ],
)
def test_what_has_a_place_in_a_module_can_be_sent(function):
    check_portable(function, vectorize=None)


def inner():
    number = 3
    return lambda x: x + number


def local():
    def named(x):
        return x

    return named


@pytest.mark.parametrize("function", [lambda x: x, inner(), local(), Adds(lambda x: x)])
def test_what_has_no_name_of_its_own_can_be_sent(function):
    check_portable(function, vectorize=None)
    assert callable(pickle.loads(pickled_function(function)))


def test_values_that_a_function_uses_are_sent_with_it():
    assert pickle.loads(pickled_function(inner()))(2) == 5


LOCK = Lock()


def locking():
    inner = Lock()
    return lambda x: (x, inner)[0]


class Locked:
    def __init__(self):
        self.lock = Lock()

    def more(self, x):
        return x


@pytest.mark.parametrize(
    ("function", "used"),
    [
        (lambda x: (x, LOCK)[0], "the variable LOCK, of type _thread.lock"),
        (locking(), "the variable inner, of type _thread.lock"),
        (functools.partial(chores.killed_once, Lock()), "the argument of type _thread.lock"),
        (functools.partial(chores.killed_once, mark=Lock()), "the argument mark"),
        (Locked().more, "the object of type tests.runtime.test_portable.Locked"),
    ],
)
def test_what_cannot_be_sent_is_named(function, used):
    with pytest.raises(InvalidArgumentError, match="cannot be sent to another process") as caught:
        check_portable(function, vectorize=None)
    assert f"cannot pickle '_thread.lock' object. It uses {used}." in str(caught.value)
    assert "fix: make what it uses inside of the function" in str(caught.value)


def test_an_iterator_is_told_in_one_line():
    iterator = iter(tf.data.Dataset.range(3))
    with pytest.raises(InvalidArgumentError, match=r"It uses the variable iterator") as caught:
        check_portable(lambda x: x + next(iterator), vectorize=None)
    assert str(caught.value).count("fix:") == 1


def test_arrays_are_not_copied_to_find_out():
    large = np.zeros(1 << 28, np.uint8)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    check_portable(lambda x: large[x], vectorize=None)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 17


def test_functions_of_modules_go_by_name():
    assert len(pickled_function(chores.tenfold)) < 100


@pytest.fixture
def in_main(monkeypatch):
    """Return a function that is defined in the program itself."""
    program = ModuleType("__main__")
    text = "def decode(x):\n    return x\ndef locked(x):\n    return x, lock"
    exec(text, program.__dict__, program.__dict__)
    program.lock = Lock()
    monkeypatch.setitem(sys.modules, "__main__", program)
    return program


def test_a_function_of_the_program_goes_by_value(in_main):
    check_portable(in_main.decode, vectorize=None)
    pickled = pickled_function(functools.partial(in_main.decode))
    del in_main.decode
    assert pickle.loads(pickled)(3) == 3


def test_a_function_of_a_program_with_a_file_goes_by_name_if_it_uses_what_cannot_be_sent(
    in_main, tmp_path
):
    in_main.__file__ = str(tmp_path / "train.py")
    with pytest.raises(InvalidArgumentError, match="It uses the variable lock"):
        check_portable(in_main.locked, vectorize=None)
    (tmp_path / "train.py").touch()
    check_portable(in_main.locked, vectorize=None)
    assert pickle.loads(pickled_function(in_main.locked)) is in_main.locked


def test_blocks_and_processes_exclude_each_other():
    with pytest.raises(InvalidArgumentError, match="vectorize=True asks for Blocks"):
        check_portable(chores.tenfold, vectorize=True)


def test_other_systems_are_told(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(UnimplementedError, match="processes=True needs Linux"):
        check_portable(chores.tenfold, vectorize=None)


def test_a_program_that_is_loaded_again_starts_no_processes():
    refuse_while_loading_main("decode")
    token = LOADING_MAIN.set(True)
    try:
        with pytest.raises(FailedPreconditionError, match='if __name__ == "__main__":'):
            refuse_while_loading_main("decode")
    finally:
        LOADING_MAIN.reset(token)
