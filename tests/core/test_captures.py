import pickle
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from evenfeed.core.captures import (
    EMPTY,
    Fields,
    bound_values,
    captured_values,
    constant_key,
    live,
    named_by,
    names_used,
    own_attributes,
    places_of,
    with_bound_values,
    with_values_of_now,
)

LIMIT = 10


def counter(start: int, step: int) -> Any:
    def count(x: int, factor: int = 2, *, more: int = 3) -> int:
        def inner() -> int:
            return LIMIT + step

        return (x + start) * factor + more + inner()

    return count


def test_a_copy_with_its_own_bound_values_does_the_same():
    function = counter(1, 2)
    copied = with_bound_values(function, bound_values(function))
    assert copied is not function
    assert copied(5) == function(5) == (5 + 1) * 2 + 3 + 12


def test_a_copy_with_other_bound_values_leaves_the_function_as_it_is():
    function = counter(1, 2)
    assert bound_values(function) == [1, 2, 2, 3]
    assert with_bound_values(function, [0, 0, 1, 0])(5) == 5 + 10
    assert function(5) == 27


def test_a_variable_without_a_value_stays_without_one():
    def late() -> int:
        return value

    assert bound_values(late) == [EMPTY]
    assert list(captured_values(late)) == []
    with pytest.raises(NameError):
        with_bound_values(late, [EMPTY])()
    value = 1
    assert late() == 1


def test_names_of_inner_functions_count():
    function = counter(1, 2)
    assert "LIMIT" in names_used(function.__code__)
    assert LIMIT in captured_values(function)


class Scaled:
    def __init__(self) -> None:
        self.scale, self.unused = 3, 4

    def __call__(self, x: int) -> int:
        return self.apply(x)

    def apply(self, x: int) -> int:
        return x * self.scale


def test_an_object_shows_the_attributes_that_its_methods_use():
    scaled = Scaled()
    assert own_attributes(scaled, Scaled.__call__) == {"scale": 3}
    assert list(named_by(scaled)) == [3]
    assert list(named_by(scaled.apply)) == [3]


def test_a_partial_shows_its_arguments_and_its_function():
    assert list(named_by(partial(counter(1, 2), 7, more=8))) == [7, 8, 1, 2, 2, 3, LIMIT]


def test_functions_that_a_function_calls_count_up_to_the_depth():
    called = counter(7, 8)

    def calls() -> int:
        return called(1)

    assert list(named_by(calls)) == [called]
    assert list(named_by(calls, 1)) == [called, 7, 8, 2, 3, LIMIT]


def test_places_of_a_function_are_its_variables_and_the_globals_that_it_names():
    function = counter(1, 2)
    labels = {p.label(key): value for p in places_of(function) for key, value in p.items()}
    assert labels == {"start": 1, "step": 2, "LIMIT": LIMIT}
    first = next(iter(places_of(function)))
    first.put(None, 100)
    assert function(0) == 200 + 3 + 12


def test_fields_show_only_the_names_that_count():
    values = {"a": 1, "b": 2}
    assert dict(Fields(values, "self.").items()) == values
    assert dict(Fields(values, "self.", ["b", "c"]).items()) == {"b": 2}
    assert Fields(values, "self.").label("a") == "self.a"


SCALE = 2
TABLE = [1, 2]


def made(number):
    return lambda x: x * number + SCALE


def counting():
    count = 0

    def call(x):
        nonlocal count
        count += 1
        return x + count

    return call


def storing(x):
    global SCALE  # noqa: PLW0603 - tested
    SCALE += 1
    return x


def test_functions_of_plain_values_have_a_key_of_what_they_do(monkeypatch):
    key = constant_key(made(3))
    assert key is not None
    assert hash(key) == hash(constant_key(made(3)))
    assert key == constant_key(made(3))
    assert len({key, constant_key(made(4)), constant_key(made(3.0)), constant_key(made(True))}) == 4
    monkeypatch.setitem(globals(), "SCALE", 3)
    assert constant_key(made(3)) != key
    library = constant_key(lambda x: np.abs(x) + len(x.shape))
    assert library is not None


def test_functions_that_may_do_something_else_have_no_key():
    array = np.zeros(3)
    for function in (
        lambda x: x + TABLE[0],
        lambda x: x + array,
        lambda x, held=array: x + held,
        lambda x: x + np.random.rand(),
        lambda x: input(x) or x,
        lambda x: made(x)(x),
        lambda x: setattr(x, "a", 1),
        counting(),
        storing,
        partial(made, 3),
        [].append,
    ):
        assert constant_key(function) is None
    marked = made(3)
    marked.note = 1
    assert constant_key(marked) is None


def scaled(x):
    return x * SCALE


def test_a_function_keeps_the_values_that_its_variables_have():
    k, table = 1, [1]
    function = with_values_of_now(lambda x: x + k + table[0])
    k, table[0] = 10, 100
    assert function(0) == 101
    table = None
    assert function(0) == 101


def test_local_functions_that_a_function_captures_keep_their_values_too():
    k = 2

    def times(x):
        return x * k if x < 5 else times(x - 1)

    function = with_values_of_now(lambda x: times(x) + 1)
    k = 100
    assert function(3) == 7


def test_a_lambda_keeps_the_values_of_globals(monkeypatch):
    original = lambda x: x * SCALE  # noqa: E731 - what users pass
    function = with_values_of_now(original)
    monkeypatch.setitem(globals(), "SCALE", 50)
    assert (function(1), original(1)) == (2, 50)
    assert function.__qualname__ == original.__qualname__
    assert function.__module__ == __name__


def test_pickle_still_finds_a_function_of_a_module():
    assert pickle.loads(pickle.dumps(with_values_of_now(scaled))) is scaled


def test_a_function_without_data_stays_the_same():
    def helper(x):
        return np.abs(x)

    def waiting(x):
        return x + late

    calling = lambda x: helper(x) + 1  # noqa: E731 - what users pass
    for function in (lambda x: x, helper, calling, waiting, partial(scaled), [].append):
        assert with_values_of_now(function) is function
    late = 1
    assert with_values_of_now(waiting)(1) == 1 + late


def test_a_function_that_assigns_or_calls_python_later_sees_variables_as_they_are():
    count, step = 0, 1

    def counts(x):
        nonlocal count
        count += step
        return x + count

    counted = with_values_of_now(counts)
    step = 10
    assert (counted(0), counted(0), count) == (1, 2, 2)

    def py_function(function):
        return function()

    tf = SimpleNamespace(py_function=py_function)
    calling = with_values_of_now(lambda: tf.py_function(lambda: step))
    looking = with_values_of_now(lambda: eval("step", {}, {"step": step}))
    step = 20
    assert (calling(), looking()) == (20, 20)
    assert with_values_of_now(storing) is storing


def test_what_python_calls_later_is_the_function_that_sees_variables_as_they_are():
    step = 1

    def called(x):
        return x + step

    calling = with_values_of_now(lambda x: (live(called)(x), called(x)))
    step = 10
    assert calling(0) == (10, 1)
    assert live(called) is called
    assert live(print) is print


def test_variables_beside_a_later_call_keep_their_values():
    tf = SimpleNamespace(py_function=lambda function: function())
    step, scale = 1, 2
    calling = with_values_of_now(lambda: (tf.py_function(lambda: step), scale))
    step, scale = 10, 20
    assert calling() == (10, 2)


def test_local_functions_that_capture_each_other_are_copied_once():
    step = 1

    def first(x):
        return x + step

    def either(f, g):
        return lambda x: g(x) if f is g else f(x)

    made = [first, first]
    for _ in range(40):
        made.append(either(*made[-2:]))
    kept = with_values_of_now(made[-1])
    step = 10
    assert kept(0) == 1
