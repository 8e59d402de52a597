import copy
import inspect
import pickle
import re

import pytest

from evenfeed.core import errors
from evenfeed.core.callsite import Origin
from evenfeed.core.errors import EvenfeedError, InvalidArgumentError, described

TREE = dict(re.findall(r"─ (\w+) +also (\w+)", errors.__doc__))
CLASSES = [
    kind
    for _, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, EvenfeedError)
]
NAMED = [kind for kind in CLASSES if kind is not EvenfeedError]


def line_here() -> int:
    return inspect.currentframe().f_back.f_lineno


def test_the_tree_in_the_docstring_is_complete():
    assert sorted(TREE) == sorted(kind.__name__ for kind in NAMED)


@pytest.mark.parametrize("kind", NAMED)
def test_each_class_is_also_its_builtin(kind):
    builtin = __builtins__[TREE[kind.__name__]]
    assert kind.__mro__[:3] == (kind, EvenfeedError, builtin)


@pytest.mark.parametrize("kind", NAMED)
def test_each_class_has_the_code_of_its_name(kind):
    words = re.findall("[A-Z][a-z]+", kind.__name__.removesuffix("Error"))
    assert kind.error_code == getattr(errors, "_".join(words).upper())


def test_codes_are_all_different():
    assert sorted(kind.error_code for kind in NAMED) == list(range(1, 17))


@pytest.mark.parametrize("kind", CLASSES)
def test_an_error_says_what_where_and_how_to_fix_it(kind):
    error = kind("It broke.", fix="mend it.")
    at = f"tests/core/test_errors.py:{line_here() - 1}"
    assert str(error) == f"It broke.\n  at:  {at}\n  fix: mend it."
    assert (error.message, error.fix, str(error.origin)) == ("It broke.", "mend it.", at)


def test_an_error_without_a_fix_has_no_line_for_it():
    assert str(InvalidArgumentError("No.", origin=Origin("<stdin>", 2))) == "No.\n  at:  <stdin>:2"


@pytest.mark.parametrize("kind", CLASSES)
@pytest.mark.parametrize("again", [lambda e: pickle.loads(pickle.dumps(e)), copy.copy])
def test_an_error_survives_a_pickle(kind, again):
    error = kind("It broke: ä\n\0.", fix="mend it.", origin=Origin("/else/where.py", 12))
    error.add_note("while mapping element 17")
    error.step = 3
    back = again(error)
    assert type(back) is kind
    assert str(back) == str(error)
    assert vars(back) == vars(error)
    assert back.__notes__ == ["while mapping element 17"]
    assert (back.message, back.fix, back.origin) == (error.message, error.fix, error.origin)


def test_tensorflows_own_arguments_are_understood():
    error = errors.NotFoundError("a node", "an op", "no such file")
    assert (error.node_def, error.op, error.message) == ("a node", "an op", "no such file")
    assert str(error).startswith("no such file\n")
    assert pickle.loads(pickle.dumps(error)).node_def == "a node"


@pytest.mark.parametrize("kind", CLASSES)
def test_tensorflows_own_arguments_may_be_named(kind):
    error = kind(node_def="a node", op=None, message="m")
    assert (error.node_def, error.op, error.message) == ("a node", None, "m")
    assert error.error_code == kind.error_code
    assert kind(node_def=None, op=None, message="m").node_def is None


def test_the_base_takes_a_code():
    error = EvenfeedError(None, None, "m", errors.NOT_FOUND)
    assert (error.message, error.error_code) == ("m", errors.NOT_FOUND)
    assert pickle.loads(pickle.dumps(error)).error_code == errors.NOT_FOUND
    assert EvenfeedError("m").error_code == errors.UNKNOWN


class Unreadable(errors.NotFoundError):
    def __init__(self, path, *, line):
        super().__init__(f"{path}:{line} cannot be read.")
        self.path = path


class Full(errors.ResourceExhaustedError):
    def __init__(self, used, limit):
        super().__init__(f"{used} of {limit} bytes are used.")
        self.used = used


@pytest.mark.parametrize("error", [Unreadable("a.csv", line=3), Full(7, 8)])
def test_an_error_of_a_user_class_survives_a_pickle(error):
    back = pickle.loads(pickle.dumps(error))
    assert type(back) is type(error)
    assert str(back) == str(error)
    assert vars(back) == vars(error)


def test_the_tree_is_shown_as_it_is_written():
    assert "::\n\n    EvenfeedError" in errors.__doc__


def test_an_error_needs_no_arguments():
    assert errors.UnknownError().message == ""


def test_a_plain_error_gets_the_same_lines():
    text = described("It broke.", fix="mend it.", origin=Origin("<stdin>", 9))
    assert text == "It broke.\n  at:  <stdin>:9\n  fix: mend it."


def test_a_described_error_names_the_line_that_is_running():
    assert described("No.") == f"No.\n  at:  tests/core/test_errors.py:{line_here()}"
