import logging

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.resuming import assert_resumes, rows_of
from tests.unknown import Watched, count, slices

from evenfeed.core import dtypes
from evenfeed.core.errors import DataLossError, FailedPreconditionError, InvalidArgumentError
from evenfeed.core.specs import INFINITE, UNKNOWN
from evenfeed.plan.checking import AssertCardinality, IgnoreErrors, Unique
from evenfeed.plan.combining import Zip
from evenfeed.plan.sources import Range
from evenfeed.runtime.live_state import ignored_by
from evenfeed.runtime.operators.checking import CountPromised, DropFailed, DropSeen

NUMBERS = Range(0, 3)


def values_of(operator, most=3, limit=20):
    return [row if isinstance(row, type) else row[0][2] for row in rows_of(operator, most, limit)]


@given(st.lists(st.integers(0, 4), max_size=12))
def test_unique_keeps_the_first_of_equal_elements_and_resumes(values):
    found = assert_resumes(lambda: DropSeen(slices(np.array(values, np.int64))))
    assert [row[0][2] for row in found] == list(dict.fromkeys(values))


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (np.array([b"b", b"a", b"b"], object), [b"b", b"a"]),
        (np.array([[1, 1], [2, 2], [1, 1]]), [[1, 1], [2, 2]]),
        ([np.array([1]), np.array([1, 1]), np.array([1])], [[1], [1, 1]]),
    ],
)
def test_text_and_vectors_are_compared_too(column, expected):
    assert values_of(DropSeen(slices(column))) == expected


def test_elements_that_cannot_be_compared_are_refused():
    with pytest.raises(TypeError, match="unique supports int32, int64 and string"):
        Unique(Range(0, 3, dtype=dtypes.float32))
    with pytest.raises(InvalidArgumentError, match="elements with one component"):
        Unique(Zip((0, 0), (NUMBERS, NUMBERS)))
    assert Unique(NUMBERS).size == UNKNOWN


def ignoring(*script, **options):
    node = IgnoreErrors(NUMBERS, **options)
    return DropFailed(Watched(*script), node), node


@given(st.lists(st.one_of(st.integers(0, 9), st.just(ValueError("no"))), max_size=8))
def test_elements_that_fail_are_left_out_and_counted(script):
    operator, node = ignoring(*script)
    expected = [x for x in script if isinstance(x, int)]
    assert values_of(operator) == expected
    assert ignored_by(node).count == len(script) - len(expected)
    assert_resumes(lambda: ignoring(*script)[0])


def test_errors_are_logged_and_remembered(caplog):
    operator, node = ignoring(1, ValueError("no"), 3, log_warning=True)
    with caplog.at_level(logging.INFO, "evenfeed"):
        values_of(operator)
    assert caplog.messages[0] == "ignore_errors skipped an element: ValueError: no"
    assert caplog.messages[1].endswith("skipped 1 elements")
    assert list(ignored_by(node).skipped) == [(None, None, "ValueError: no")]


def test_what_was_skipped_names_file_byte_and_what_was_done():
    error = DataLossError("gone").in_file("a.bin", 7)
    error.add_note("while mapping")
    operator, node = ignoring(1, error, DataLossError("x").in_file("b.bin"))
    assert values_of(operator) == [1]
    first, second = ignored_by(node).skipped
    assert (first.file, first.offset, second.file, second.offset) == ("a.bin", 7, "b.bin", None)
    assert first.reason.startswith("DataLossError: gone")
    assert first.reason.endswith("while mapping")


def test_only_the_last_thousand_are_kept():
    operator, node = ignoring(*[ValueError(str(number)) for number in range(1005)])
    assert values_of(operator) == []
    assert ignored_by(node).count == 1005
    assert [row.reason for row in ignored_by(node).skipped][::999] == [
        "ValueError: 5", "ValueError: 1004",
    ]  # fmt: skip


def test_after_so_many_errors_they_are_let_through():
    operator, _ = ignoring(1, KeyError(), KeyError(), 4, max_total=1)
    assert values_of(operator) == [1, KeyError, 4]
    operator, _ = ignoring(1, KeyError(), 2, KeyError(), max_total=0)
    assert values_of(operator) == [1, KeyError, 2, KeyError]


@given(st.lists(st.one_of(st.integers(0, 9), st.just(ValueError("no"))), max_size=12))
def test_so_many_errors_one_behind_the_other_are_let_through(script):
    expected, row = [], 0
    for value in script:
        if isinstance(value, int):
            row = 0
            expected.append(value)
        else:
            row += 1
            expected += [ValueError] if row > 2 else []
    assert values_of(ignoring(*script, max_consecutive=2)[0]) == expected
    assert_resumes(lambda: ignoring(*script, max_consecutive=2)[0])


@pytest.mark.parametrize("name", ["max_total", "max_consecutive"])
def test_a_negative_number_of_errors_is_refused(name):
    with pytest.raises(InvalidArgumentError, match=f"{name} must be at least 0, but got -1"):
        ignoring(**{name: -1})


def test_an_error_without_end_is_let_through():
    class Broken(Watched):
        def read(self, most):
            raise KeyError

    with pytest.raises(KeyError):
        DropFailed(Broken(), IgnoreErrors(NUMBERS)).read(1)


def promised(count_there, count_promised):
    node = AssertCardinality(NUMBERS, count_promised)
    return CountPromised(count(count_there), node)


@pytest.mark.parametrize("most", [1, 2, 9])
@pytest.mark.parametrize(
    ("there", "asserted", "expected"),
    [
        (3, 3, [0, 1, 2]),
        (3, 4, [0, 1, 2, FailedPreconditionError]),
        (3, 2, [0, 1, FailedPreconditionError]),
        (2, INFINITE, [0, 1, FailedPreconditionError]),
        (0, 0, []),
    ],
)
def test_a_promise_is_checked_once_all_elements_are_out(there, asserted, expected, most):
    assert values_of(promised(there, asserted), most, len(expected) or 1) == expected


@pytest.mark.parametrize("asserted", [3, 5, 7, INFINITE])
def test_a_promise_resumes(asserted):
    assert_resumes(lambda: promised(5, asserted))


@pytest.mark.parametrize("asserted", [2, 4, INFINITE])
def test_a_broken_promise_is_raised_once_and_can_be_ignored(asserted):
    assert values_of(promised(3, asserted), 1, 9).count(FailedPreconditionError) == 1
    node = IgnoreErrors(NUMBERS)
    assert (
        values_of(DropFailed(promised(3, asserted), node), 1, 9)
        == [0, 1, 2][: asserted if asserted > 0 else 3]
    )


def test_unique_resumes_behind_errors():
    assert_resumes(lambda: DropSeen(Watched(1, ValueError(), 1, 2, KeyError(), 3)))


def test_a_promise_is_the_size():
    assert AssertCardinality(NUMBERS, 7).size == 7
    with pytest.raises(InvalidArgumentError, match="at least 0 or infinite"):
        AssertCardinality(NUMBERS, UNKNOWN)
