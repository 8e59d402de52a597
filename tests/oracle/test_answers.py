"""Compares evenfeed with TensorFlow, whose answers are kept in tests/oracle/answers."""

import json
import math
from functools import cache
from typing import Any

import jax
import pytest
from tests.oracle.asking import ANSWERS, SUBJECTS, ask, programs
from tests.oracle.differences import DIFFERENT
from tests.oracle.plain import Raised, plain

import evenfeed as tf

PROGRAMS = [(subject, name) for subject in SUBJECTS for name in programs(subject)]


@cache
def tensorflow_says(subject: str) -> dict[str, Any]:
    return json.loads((ANSWERS / f"{subject}.json").read_text())


@cache
def evenfeed_says(subject: str, name: str) -> dict[str, Any]:
    with jax.enable_x64(True):  # so that 64-bit dtypes are TensorFlow's
        return programs(subject)[name](tf, ask)


@pytest.mark.parametrize(("subject", "name"), PROGRAMS)
def test_evenfeed_answers_as_tensorflow_does(subject, name):
    expected, answers = tensorflow_says(subject)[name], evenfeed_says(subject, name)
    wrong = [
        f"{subject}.{name}.{label}\n  TensorFlow: {expected[label]}\n  evenfeed:   {shown(value)}"
        for label, value in answers.items()
        if f"{subject}.{name}.{label}" not in DIFFERENT and not agrees(expected[label], value)
    ]
    assert not wrong, "\n".join(["", *wrong])


@pytest.mark.parametrize("place", DIFFERENT)
def test_a_difference_that_is_listed_is_there(place):
    subject, name, label = place.split(".", 2)
    expected, value = tensorflow_says(subject)[name][label], evenfeed_says(subject, name)[label]
    assert not agrees(expected, value), "the two agree: take the entry out of differences.py"


def test_every_subject_has_answers_and_every_answer_a_program():
    assert sorted(path.stem for path in ANSWERS.glob("*.json")) == SUBJECTS
    for subject in SUBJECTS:
        assert sorted(tensorflow_says(subject)) == sorted([*programs(subject), "tensorflow"])


@pytest.mark.parametrize(("subject", "name"), PROGRAMS)
def test_questions_and_answers_have_the_same_labels(subject, name):
    assert sorted(evenfeed_says(subject, name)) == sorted(tensorflow_says(subject)[name])


def test_all_answers_are_of_one_version():
    assert {tensorflow_says(subject)["tensorflow"] for subject in SUBJECTS} == {"2.21.0"}


@pytest.mark.parametrize(
    ("expected", "value"),
    [
        (1, 2),
        (1.0, 1.00001),
        ({"dtype": "int32", "shape": [], "data": [1]}, 1),
        ({"raises": "ValueError"}, Raised(("TypeError", "Exception"))),
        ({"raises": "ValueError"}, 1),
        ({"tuple": [1]}, [1]),
        ({"dict": [["a", 1], ["b", 2]]}, {"b": 2, "a": 1}),
        (True, 1),
        ("nan", "inf"),
    ],
)
def test_other_answers_do_not_agree(expected, value):
    assert not agrees(expected, value)


@pytest.mark.parametrize(
    ("expected", "value"),
    [
        (1.0, 1.0000000001),
        ("nan", float("nan")),
        ({"raises": "ValueError"}, Raised(("InvalidArgumentError", "ValueError"))),
        ({"dict": [["b", 2], ["a", {"tuple": [1, None]}]]}, {"b": 2, "a": (1, None)}),
        ({"bytes": "a\\xff"}, b"a\xff"),
    ],
)
def test_equal_answers_agree(expected, value):
    assert agrees(expected, value)


def agrees(expected: Any, value: Any) -> bool:
    """Tell whether a program written for TensorFlow cannot tell the difference."""
    if isinstance(value, Raised):  # an `except` clause for TensorFlow's class must catch ours
        return isinstance(expected, dict) and expected.get("raises") in value.names
    return _same(expected, plain(value))


def shown(value: Any) -> Any:
    return plain(value)


def _same(one: Any, two: Any) -> bool:
    if type(one) is not type(two):
        return False
    match one:
        case float():
            return math.isclose(one, two, rel_tol=1e-6)
        case list():
            return len(one) == len(two) and all(map(_same, one, two))
        case dict():
            return one.keys() == two.keys() and all(_same(one[key], two[key]) for key in one)
        case _:
            return one == two
