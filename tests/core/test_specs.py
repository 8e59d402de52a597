import copy
import pickle

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.saying import error_saying

from evenfeed.core import dtypes
from evenfeed.core.conversion import TensorLike
from evenfeed.core.optional import Optional, OptionalSpec
from evenfeed.core.specs import NoneTensorSpec, TensorSpec, spec_of, type_spec_from_value

dimensions = st.none() | st.integers(0, 2)
tensors = st.builds(
    TensorSpec,
    st.none() | st.lists(dimensions, max_size=2),
    st.sampled_from([dtypes.int32, dtypes.string]),
    st.sampled_from([None, "a", "b"]),
)
composites = st.builds(OptionalSpec, tensors | st.tuples(tensors, tensors))
specs = tensors | composites | st.builds(NoneTensorSpec)


@given(specs)
def test_a_spec_is_its_own_subtype_supertype_and_copy(spec):
    assert spec.is_subtype_of(spec)
    assert spec.is_compatible_with(spec)
    assert spec.most_specific_common_supertype([spec]) == spec
    for again in (copy.deepcopy(spec), pickle.loads(pickle.dumps(spec))):
        assert again == spec
        assert hash(again) == hash(spec)


@given(specs, specs)
def test_the_common_supertype_is_an_upper_bound_and_symmetric(one, two):
    common = one.most_specific_common_supertype([two])
    assert common == two.most_specific_common_supertype([one])
    if common is None:
        with pytest.raises(ValueError, match="No TypeSpec is compatible with both"):
            one.most_specific_compatible_type(two)
    else:
        assert common == one.most_specific_compatible_type(two)
        assert one.is_subtype_of(common)
        assert two.is_subtype_of(common)


@given(specs, specs, specs)
def test_subtyping_is_a_partial_order_on_specs_without_names(one, two, three):
    if one.is_subtype_of(two) and two.is_subtype_of(three) and "'" not in f"{one}{two}{three}":
        assert one.is_subtype_of(three)
        assert (one == two) == two.is_subtype_of(one)


@given(specs, specs)
def test_compatible_is_symmetric_and_follows_from_subtype(one, two):
    assert one.is_compatible_with(two) == two.is_compatible_with(one)
    if one.is_subtype_of(two):
        assert one.is_compatible_with(two)


@pytest.mark.parametrize(
    ("mine", "theirs", "expected"),
    [
        (None, None, True),
        (None, "a", True),
        ("a", None, False),
        ("a", "a", True),
        ("a", "b", False),
    ],
)
def test_a_named_spec_is_a_subtype_of_its_own_name_only(mine, theirs, expected):
    spec, other = TensorSpec([2], name=mine), TensorSpec([None], name=theirs)
    assert spec.is_subtype_of(other) is expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.array([1, 2], np.int32), True),
        (jnp.array([1, 2], "int32"), True),
        (np.array([1.5], np.float32), False),
        (np.array(1, np.int32), False),
        ([1, 2], False),
        (1, False),
        (None, False),
        ("a", False),
    ],
)
def test_a_spec_is_compatible_with_the_arrays_it_describes(value, expected):
    assert TensorSpec([None], dtypes.int32).is_compatible_with(value) is expected


def test_only_the_spec_of_none_is_compatible_with_none():
    assert NoneTensorSpec().is_compatible_with(None)
    assert not NoneTensorSpec().is_compatible_with(1)
    assert not TensorSpec([]).is_compatible_with(None)
    assert not TensorSpec([]).is_compatible_with(NoneTensorSpec())


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (3, TensorSpec([], dtypes.int32)),
        (2.5, TensorSpec([])),
        ("a", TensorSpec([], dtypes.string)),
        ([[1], [2]], TensorSpec([2, 1], dtypes.int32)),
        ((1, 2), TensorSpec([2], dtypes.int32)),
        (np.zeros((0, 3), ">i2"), TensorSpec([0, 3], dtypes.int16)),
        (np.array(["a"]), TensorSpec([1], dtypes.string)),
        (jnp.zeros(2, "bfloat16"), TensorSpec([2], dtypes.bfloat16)),
        (None, NoneTensorSpec()),
        (Optional.from_value([1.5]), OptionalSpec(TensorSpec([1]))),
    ],
)
def test_values_have_specs(value, expected):
    assert type_spec_from_value(value) == expected


@pytest.mark.parametrize("value", [object(), {"a": 1}, [[1], [2, 3]]])
def test_what_has_no_spec_is_a_type_error(value):
    what = f"{value!r} of type {type(value).__name__} has no TypeSpec."
    with error_saying(TypeError, what, fix="pass a number, text, an array or a list of them; …"):
        type_spec_from_value(value)


def test_an_element_has_specs_in_its_own_structure():
    element = {"b": (np.zeros(2), None), "a": np.array("x", object)}
    expected = {
        "b": (TensorSpec([2], dtypes.float64), NoneTensorSpec()),
        "a": TensorSpec([], dtypes.string),
    }
    assert spec_of(element) == expected
    assert list(spec_of(element)) == ["b", "a"]


def test_a_spec_is_made_of_a_tensor_or_another_spec():
    array = np.zeros((2, 3), np.int8)
    assert TensorSpec.from_tensor(array, "x") == TensorSpec([2, 3], "int8", "x")
    named = TensorSpec([2], "int8", "x")
    assert TensorSpec.from_spec(named) == named
    assert TensorSpec.from_spec(named, "y") == TensorSpec([2], "int8", "y")


def test_from_tensor_of_a_list_says_how_to_convert_it():
    fix = "convert it first: evenfeed.convert_to_tensor(value)."
    with error_saying(ValueError, "from_tensor needs a tensor, but got [1, 2].", fix=fix):
        TensorSpec.from_tensor([1, 2])


def test_specs_print_as_tensorflows_do():
    assert (
        repr(TensorSpec([None, 3], "string"))
        == "TensorSpec(shape=(None, 3), dtype=tf.string, name=None)"
    )
    assert (
        repr(TensorSpec(None, "half", "x"))
        == "TensorSpec(shape=<unknown>, dtype=tf.float16, name='x')"
    )
    assert repr(NoneTensorSpec()) == "NoneTensorSpec()"


def test_specs_of_other_kinds_are_neither_equal_nor_subtypes():
    tensor, none, optional = TensorSpec([]), NoneTensorSpec(), OptionalSpec(TensorSpec([]))
    for one in (tensor, none, optional):
        for two in {tensor, none, optional} - {one}:
            assert one != two
            assert not one.is_subtype_of(two)
            assert not one.is_compatible_with(two)
            assert one.most_specific_common_supertype([two]) is None


def test_specs_know_the_types_of_their_values():
    assert TensorSpec([]).value_type is TensorLike
    assert isinstance(np.zeros(2), TensorSpec([]).value_type)
    assert NoneTensorSpec().value_type is type(None)
    assert OptionalSpec(TensorSpec([])).value_type is Optional
