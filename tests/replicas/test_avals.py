"""Shapes that workers exchange, with a fake second worker."""

import json
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
import pytest

from evenfeed.core.errors import InvalidArgumentError
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.run.avals import Aval, PlainArrays, aval_of, avals_of_all
from evenfeed.replicas.session import Session


@dataclass(frozen=True)
class Device:
    """A device of a worker. Nothing is computed on it."""

    process_index: int
    number: int = 0


class Other:
    """Connects a worker with one replica to a fake worker whose answers the test chooses."""

    def __init__(self, *answers):
        self.answers = list(answers)
        self.heard = []
        self.replicas = Replicas.on([Device(0), Device(1)], Session(self.tell))

    def tell(self, text):
        what, said = json.loads(text)
        self.heard.append(said)
        answer = self.answers.pop(0)
        return [text, json.dumps([what, said] if answer is SAME else answer(what, said))]


SAME = object()


def says(answer):
    return lambda what, _: [what, answer]


def test_looks_come_in_the_order_of_the_replicas():
    other = Other(says([[[[3, 2], "float32"]], [[[], "int32"]]]))
    values = [[jnp.zeros((1, 2), jnp.float32)], [np.int32(7)]]
    assert avals_of_all(other.replicas, values) == [
        (Aval((1, 2), "float32"), Aval((3, 2), "float32")),
        (Aval((), "int32"), Aval((), "int32")),
    ]


@pytest.mark.parametrize(
    ("part", "aval"),
    [
        (np.zeros(2, np.int8), Aval((2,), "int8")),
        (jnp.zeros((), jnp.bfloat16), Aval((), "bfloat16")),
        (True, Aval((), "bool")),
        (np.array([b"a"], object), Aval((1,), "object")),
        (None, None),
        ("text", None),
    ],
)
def test_what_a_part_looks_like(part, aval):
    assert aval_of(part) == aval


def test_only_text_is_text():
    assert [Aval((), name).is_text for name in ("object", "float32")] == [True, False]


def test_another_number_of_values_is_an_error():
    other = Other(says([]))
    with pytest.raises(
        InvalidArgumentError, match=r"same number of values, but they pass \[1, 0\]"
    ):
        avals_of_all(other.replicas, [[1]])


def test_a_worker_at_another_place_is_an_error_on_both():
    other = Other(lambda _what, _said: ["all_reduce of int32[]", None])
    with pytest.raises(RuntimeError, match="worker 0 at the shapes of values; worker 1 at all_red"):
        avals_of_all(other.replicas, [[1]])


def test_on_one_worker_nobody_is_asked():
    assert avals_of_all(Replicas.on([Device(0), Device(0, 1)]), [[1, 2.0]]) == [
        (Aval((), "int32"), Aval((), "float32"))
    ]


def test_arrays_are_compared_once_for_each_object():
    other = Other(SAME, SAME)
    plain, first = PlainArrays(other.replicas), jnp.zeros(2)
    assert plain.are_alike([first])
    assert plain.are_alike([first])
    assert len(other.heard) == 1
    assert plain.are_alike([first, jnp.ones(2)])
    assert len(other.heard) == 2


def test_arrays_that_differ_are_compared_each_time():
    other = Other(says(0), says(0))
    plain, array = PlainArrays(other.replicas), jnp.zeros(2)
    assert [plain.are_alike([array]) for _ in range(2)] == [False, False]
    assert len(other.heard) == 2


def test_an_array_that_is_gone_is_not_taken_for_another():
    other = Other(*[SAME] * 3)
    plain = PlainArrays(other.replicas)
    for _ in range(3):  # each may have the address of the one before
        assert plain.are_alike([jnp.zeros(2) + 1])
    assert len(other.heard) == 3


def test_shapes_and_dtypes_are_what_is_compared():
    other = Other(*[SAME] * 4)
    for array in (jnp.zeros(2), jnp.ones(2), jnp.zeros(3), jnp.zeros(2, int)):
        PlainArrays(other.replicas).are_alike([array])
    assert len(set(other.heard)) == 3
