import functools
import sys
from types import ModuleType

import numpy as np
import pytest
from tests import chores

from evenfeed.errors import FailedPreconditionError, InvalidArgumentError, UnimplementedError
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
def test_what_has_no_name_of_its_own_is_refused(function):
    with pytest.raises(InvalidArgumentError, match="cannot be sent to another process") as caught:
        check_portable(function, vectorize=None)
    assert "fix: define it with def at the top level of a module" in str(caught.value)


@pytest.fixture
def in_main(monkeypatch):
    """Return a function that is defined in the program itself."""
    program = ModuleType("__main__")
    exec("def decode(x):\n    return x", program.__dict__)
    monkeypatch.setitem(sys.modules, "__main__", program)
    return program


def test_a_function_of_a_program_without_a_file_is_refused(in_main):
    with pytest.raises(InvalidArgumentError, match="decode is defined in a program without a file"):
        check_portable(functools.partial(in_main.decode), vectorize=None)
    check_portable(chores.tenfold, vectorize=None)


def test_a_function_of_a_program_with_a_file_can_be_sent(in_main, tmp_path):
    in_main.__file__ = str(tmp_path / "train.py")
    with pytest.raises(InvalidArgumentError, match="without a file"):
        check_portable(in_main.decode, vectorize=None)
    (tmp_path / "train.py").touch()
    check_portable(in_main.decode, vectorize=None)


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
