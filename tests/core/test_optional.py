import jax.numpy as jnp
import numpy as np
import pytest
from tests.saying import error_saying

from evenfeed.core.conversion import to_component
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.optional import Optional, OptionalSpec
from evenfeed.core.specs import NoneTensorSpec, TensorSpec


def test_a_present_value_can_be_read():
    optional = Optional.from_value({"b": (1, [2.5]), "a": None})
    assert optional.has_value()
    value = optional.get_value()
    assert list(value) == ["b", "a"]
    assert value["b"][0].dtype == np.int32
    assert value["b"][1].tolist() == [2.5]
    assert value["a"] is None
    assert optional.element_spec == {
        "b": (TensorSpec([], "int32"), TensorSpec([1])),
        "a": NoneTensorSpec(),
    }


@pytest.mark.parametrize("value", [3, 2.5, "text", True, [1, 2], ["a"], np.float64(1)])
def test_an_optional_returns_tensors(value):
    there = Optional.from_value({"part": value})
    assert there.has_value().numpy() is np.True_
    np.testing.assert_array_equal(there.get_value()["part"].numpy(), to_component(value))
    assert Optional.empty(there.element_spec).has_value().numpy() is np.False_


def test_arrays_are_kept_as_they_are():
    array, on_device = np.arange(3), jnp.arange(3)
    kept = Optional.from_value((array, on_device)).get_value()
    assert kept[0] is array
    assert kept[1] is on_device


def test_an_optional_can_hold_an_optional():
    inner = Optional.empty(TensorSpec([]))
    outer = Optional.from_value((inner, 1))
    assert outer.get_value()[0] is inner
    assert outer.element_spec[0] == OptionalSpec(TensorSpec([]))


@pytest.mark.parametrize("value", [None, (), {}, (None, {"a": None})])
def test_an_optional_of_nothing_says_to_make_an_empty_one(value):
    with error_saying(
        InvalidArgumentError,
        f"An Optional must hold at least one tensor, but got {value!r}.",
        fix="pass a tensor, or call Optional.empty(spec) for an empty Optional.",
    ):
        Optional.from_value(value)


def test_a_missing_value_cannot_be_read():
    optional = Optional.empty((TensorSpec([2]), NoneTensorSpec()))
    assert not optional.has_value()
    assert optional.element_spec == (TensorSpec([2]), NoneTensorSpec())
    with error_saying(
        InvalidArgumentError, "This Optional has no value.", fix="call has_value() first; …"
    ):
        optional.get_value()


def test_an_empty_optional_needs_a_spec():
    fix = "pass evenfeed.TensorSpec(shape, dtype), or a structure of them."
    with error_saying(TypeError, "An empty Optional needs a spec, but got 3.", fix=fix):
        Optional.empty((TensorSpec([]), 3))


def test_optionals_print_what_they_hold():
    assert (
        repr(Optional.from_value((1, "a")))
        == "Optional.from_value((array(1, dtype=int32), array(b'a', dtype=object)))"
    )
    assert repr(Optional.empty(TensorSpec([]))) == f"Optional.empty({TensorSpec([])!r})"
    assert repr(OptionalSpec(TensorSpec([]))) == f"OptionalSpec({TensorSpec([])!r},)"


def test_specs_of_two_structures_are_not_compatible():
    one, two = OptionalSpec((TensorSpec([]),)), OptionalSpec({"a": TensorSpec([])})
    assert one != two
    assert not one.is_compatible_with(two)
    assert one.most_specific_common_supertype([two]) is None


def test_a_common_supertype_keeps_the_structure():
    one = OptionalSpec({"b": TensorSpec([1]), "a": TensorSpec([2])})
    two = OptionalSpec({"b": TensorSpec([1]), "a": TensorSpec([3])})
    expected = OptionalSpec({"b": TensorSpec([1]), "a": TensorSpec([None])})
    assert one.most_specific_common_supertype([two]) == expected
    assert one.is_subtype_of(expected)


@pytest.mark.parametrize("value", [object(), [[1], [2, 3]]])
def test_what_cannot_become_a_tensor_is_a_type_error(value):
    with pytest.raises(TypeError, match=r"(cannot become a tensor|not rectangular)(?s:.*)at: "):
        Optional.from_value(value)
