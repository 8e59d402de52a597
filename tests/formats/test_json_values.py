import dataclasses
import json
from collections import OrderedDict
from typing import Any, NamedTuple

import pytest
from tests.saying import error_saying

import evenfeed as tf
from evenfeed.core import dtypes
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.optional import OptionalSpec
from evenfeed.core.specs import NoneTensorSpec, TensorSpec
from evenfeed.core.structure import DATA, flatten
from evenfeed.formats.json_values import (
    from_json,
    part_from_json,
    part_to_json,
    structure_from_json,
    structure_to_json,
    to_json,
)


class Pair(NamedTuple):
    y: Any
    x: Any


@dataclasses.dataclass
class Record:
    x: int


@pytest.mark.parametrize(
    "structure",
    [
        7,
        (),
        (1, (2, 3)),
        {"b": 1, "a": (2, dict[str, int]())},
        {3: 1, -1: 2},
        Pair(1, {"k": Pair(2, 3)}),
    ],
)
def test_a_structure_comes_back(structure: Any):
    data = json.loads(json.dumps(structure_to_json(structure)))
    back = structure_from_json(data, flatten(structure, DATA))
    assert back == structure
    assert structure_to_json(back) == data


def test_a_namedtuple_keeps_its_name_and_fields():
    back = structure_from_json(structure_to_json(Pair(1, 2)), [1, 2])
    assert repr(back) == "Pair(y=1, x=2)"


def test_the_order_of_keys_makes_no_difference():
    assert structure_to_json({"b": 1, "a": 2}) == structure_to_json(OrderedDict(a=1, b=2))


def test_a_user_class_needs_an_element_spec():
    data = structure_to_json(Record(1))
    with error_saying(
        InvalidArgumentError,
        "The elements are objects of the class Record, but a file does not store classes.",
        fix="pass element_spec=Record(…) with the spec of each field.",
    ):
        structure_from_json(data, [1])


def test_a_key_that_json_cannot_hold_is_refused():
    with error_saying(
        InvalidArgumentError,
        "In a file, dict keys must be strings or integers, but got (1, 2).",
        fix="map the elements to dicts with string keys first.",
    ):
        structure_to_json({(1, 2): 1})


@pytest.mark.parametrize("data", [None, 3, "x", {"list": []}, {"namedtuple": 3}])
def test_invalid_structure_data_is_refused(data: Any):
    with pytest.raises(ValueError, match="is not a structure"):
        structure_from_json(data, [])


@pytest.mark.parametrize(
    "spec",
    [
        TensorSpec([], dtypes.int64),
        TensorSpec([2, None], dtypes.bfloat16),
        TensorSpec(None, dtypes.string),
        NoneTensorSpec(),
    ],
)
def test_a_part_comes_back(spec: Any):
    assert part_from_json(json.loads(json.dumps(part_to_json(spec)))) == spec


def test_a_part_that_is_not_a_tensor_is_refused():
    with error_saying(
        InvalidArgumentError,
        "Files hold tensors, but a part of the elements is OptionalSpec…",
        fix="convert it to tensors first…",
    ):
        part_to_json(OptionalSpec(TensorSpec([])))


def test_ragged_and_sparse_tensors_survive():
    rows = tf.ragged.constant([[[1, 2]], [], [[3], []]], tf.int16)
    text = tf.RaggedTensor.from_uniform_row_length(["a", "bc"], 1)
    places = tf.sparse.from_dense([[0, 2.5, 0], [0, 0, 0]])
    for value in (rows, text):
        again = from_json(json.loads(json.dumps(to_json(value))))
        assert again.to_list() == value.to_list()
        assert again.shape == value.shape
        assert tf.type_spec_from_value(again) == tf.type_spec_from_value(value)
    again = from_json(json.loads(json.dumps(to_json(places))))
    assert tf.sparse.to_dense(again).tolist() == [[0, 2.5, 0], [0, 0, 0]]
    assert tf.type_spec_from_value(again) == tf.type_spec_from_value(places)
