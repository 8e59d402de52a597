import pytest
from tests.saying import error_saying

from evenfeed import nest


def test_dicts_are_flattened_by_sorted_key():
    assert nest.flatten({"b": 1, "a": (2, [3])}) == [2, 3, 1]
    assert nest.flatten(None) == [None]


@pytest.mark.parametrize("value", [[], (), {}, range(2), {1: 0, "a": 0}])
def test_what_has_parts_is_nested_however_few_and_however_sorted(value):
    assert nest.is_nested(value)


@pytest.mark.parametrize("value", [None, 3, "text", b"bytes", {1}, object()])
def test_what_has_no_parts_is_not_nested(value):
    assert not nest.is_nested(value)


def test_values_are_packed_into_a_structure_of_any_kind():
    assert nest.pack_sequence_as({"b": 0, "a": [0]}, (1, 2)) == {"b": 2, "a": [1]}
    assert nest.pack_sequence_as(0, [5]) == 5


def test_values_that_are_no_sequence_are_an_error():
    what = "flat_sequence must be a list or a tuple, but got a int."
    with error_saying(TypeError, what, fix="pass list(values)."):
        nest.pack_sequence_as((0,), 3)


@pytest.mark.parametrize("values", [{"a": 1, "b": 2}, {"a": 1, "b": 2}.values(), {1, 2}])
def test_what_has_no_order_of_its_own_cannot_be_packed(values):
    what = f"flat_sequence must be a list or a tuple, but got a {type(values).__name__}."
    with error_saying(TypeError, what, fix="pass list(values)."):
        nest.pack_sequence_as([0, 0], values)


def test_map_needs_a_function_and_a_structure():
    with error_saying(TypeError, "func must be callable, but got 3."):
        nest.map_structure(3, (1,))
    with error_saying(ValueError, "map_structure needs at least one structure after func."):
        nest.map_structure(len)


def test_a_mapped_structure_keeps_the_order_of_its_keys():
    assert list(nest.map_structure(abs, {"b": -1, "a": -2}).items()) == [("b", 1), ("a", 2)]


def test_types_are_compared_unless_one_says_otherwise():
    with error_saying(
        TypeError, "The structures of the first and the second differ: …", fix="give both …"
    ):
        nest.map_structure(lambda x, y: x + y, [1], (2,))
    assert nest.map_structure(lambda x, y: x + y, [1], (2,), check_types=False) == [3]
    with pytest.raises(TypeError):
        nest.assert_same_structure([1], (1,))
    nest.assert_same_structure([1], (1,), check_types=False)
    nest.assert_same_structure([1], [2], expand_composites=True)
