import pytest
from tests.chores import Crossing, blames, picky

from evenfeed.errors import InvalidArgumentError
from evenfeed.runtime.processes.child import portable_error


def raised(function, *args):
    try:
        function(*args)
    except Exception as error:  # noqa: BLE001 - the test is about any
        error.add_note("while mapping element 2")
        return error
    raise AssertionError("nothing was raised")


def test_an_error_keeps_its_type_its_notes_and_its_traceback():
    sent = portable_error(raised(picky, 2), "process 1")
    assert type(sent) is KeyError
    assert sent.args == (2,)
    first, second = sent.__notes__
    assert first == "while mapping element 2"
    assert second.startswith("in process 1:\nTraceback")
    assert second.endswith("KeyError: 2")
    assert "in picky" in second


def test_the_cause_of_an_error_is_told():
    note = portable_error(raised(blames, 2), "process 1").__notes__[-1]
    assert note.index("KeyError: 2") < note.index("direct cause") < note.index("RuntimeError")


def cross():
    raise Crossing(1, 2)


def undecodable():
    class UndecodableError(UnicodeDecodeError):
        pass

    raise UndecodableError("utf-8", b"\xff", 0, 1, "no text")


def of_here():
    class LocalError(InvalidArgumentError):
        pass

    raise LocalError("too long")


@pytest.mark.parametrize(
    ("function", "kind", "text"),
    [
        (cross, ValueError, "Crossing: 1 meets 2"),
        (undecodable, ValueError, "UndecodableError: 'utf-8' codec"),
        (of_here, ValueError, "LocalError: too long"),
    ],
)
def test_an_error_that_cannot_be_sent_is_like_it(function, kind, text):
    sent = portable_error(raised(function), "process 1")
    assert isinstance(sent, kind)
    assert type(sent).__module__ == "builtins"
    assert text in str(sent)
    assert sent.__notes__[0] == "while mapping element 2"
    assert len(sent.__notes__) == 2
