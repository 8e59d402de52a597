import copy
import pickle
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.saying import error_saying

import evenfeed as tf
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.shapes import TensorShape

dimensions = st.none() | st.integers(0, 3)
shapes = st.builds(TensorShape, st.none() | st.lists(dimensions, max_size=3))


@given(shapes)
def test_a_shape_is_a_subtype_of_itself_and_of_the_unknown_one(shape):
    assert shape.is_subtype_of(shape)
    assert shape.is_subtype_of(TensorShape(None))


@given(shapes, shapes)
def test_two_shapes_that_are_subtypes_of_each_other_are_equal(one, two):
    assert (one.is_subtype_of(two) and two.is_subtype_of(one)) == (one == two)


@given(shapes, shapes, shapes)
def test_a_subtype_of_a_subtype_is_a_subtype(one, two, three):
    if one.is_subtype_of(two) and two.is_subtype_of(three):
        assert one.is_subtype_of(three)


@given(shapes, shapes)
def test_the_most_specific_compatible_shape_is_the_least_upper_bound(one, two):
    both = one.most_specific_compatible_shape(two)
    assert one.is_subtype_of(both)
    assert two.is_subtype_of(both)
    assert both == two.most_specific_compatible_shape(one)
    assert both == one.most_specific_common_supertype([two])
    assert one.most_specific_compatible_shape(one) == one


@given(shapes, shapes, shapes)
def test_nothing_narrower_than_the_common_supertype_holds_both(one, two, bound):
    if one.is_subtype_of(bound) and two.is_subtype_of(bound):
        assert one.most_specific_compatible_shape(two).is_subtype_of(bound)


@given(shapes, shapes, shapes)
def test_a_merge_is_the_greatest_lower_bound(one, two, other):
    if not one.is_compatible_with(two):
        with pytest.raises(ValueError, match="are incompatible"):
            one.merge_with(two)
        return
    merged = one.merge_with(two)
    assert merged == two.merge_with(one)
    assert merged.is_subtype_of(one)
    assert merged.is_subtype_of(two)
    if other.is_subtype_of(one) and other.is_subtype_of(two):
        assert other.is_subtype_of(merged)


@given(shapes, shapes)
def test_shapes_are_compatible_where_something_has_both(one, two):
    assert one.is_compatible_with(two) == two.is_compatible_with(one)
    if one.is_subtype_of(two):
        assert one.is_compatible_with(two)


@given(shapes, shapes, shapes)
def test_concatenation_is_associative_and_counts_ranks(one, two, three):
    assert (one + two) + three == one + (two + three)
    if one.rank is not None and two.rank is not None:
        assert (one + two).rank == one.rank + two.rank
    assert one + TensorShape([]) == one


@given(shapes)
def test_a_shape_survives_pickle_and_copy_with_its_hash(shape):
    for again in (pickle.loads(pickle.dumps(shape)), copy.deepcopy(shape), TensorShape(shape)):
        assert again == shape
        assert hash(again) == hash(shape)
        assert repr(again) == repr(shape)


@given(st.lists(st.integers(0, 4), max_size=4))
def test_a_known_shape_counts_the_elements_of_an_array(dims):
    shape = TensorShape(dims)
    assert shape.num_elements() == np.empty(dims).size
    assert shape.is_fully_defined()
    assert shape == tuple(dims)
    assert hash(shape) == hash(tuple(dims))
    assert list(shape) == shape.as_list() == shape.dims == dims


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (5, [5]),
        ((None, 2), [None, 2]),
        (range(3), [0, 1, 2]),
        (np.array([2, 3]), [2, 3]),
        (jnp.array([2, 3]), [2, 3]),
        ([np.int64(3), True], [3, 1]),
        (iter([1, 2]), [1, 2]),
        ([], []),
        (None, None),
    ],
)
def test_a_shape_is_made_of_whatever_holds_whole_numbers(given, expected):
    assert TensorShape(given).dims == expected


@pytest.mark.parametrize("given", ["12", b"12", ["a"], [2.5], 2.5, [[1]], object()])
def test_an_invalid_dimension_is_a_type_error(given):
    shown = given[0] if isinstance(given, list) else given
    with error_saying(
        TypeError,
        f"A dimension must be an integer or None, but got {shown!r}.",
        fix="pass an integer, or a sequence such as [None, 28, 28].",
    ):
        TensorShape(given)


@pytest.mark.parametrize("given", [-1, [2, -1]])
def test_a_negative_dimension_is_a_value_error(given):
    fix = "pass None for an unknown length."
    with error_saying(InvalidArgumentError, "A dimension must be at least 0, but got -1.", fix=fix):
        TensorShape(given)


def test_a_shape_cannot_be_changed():
    with pytest.raises(AttributeError, match="a TensorShape is immutable: cannot set _dims"):
        TensorShape([1])._dims = (2,)


@pytest.mark.parametrize(
    ("ask", "what"),
    [
        (TensorShape.as_list, "as_list() is not defined for a shape of unknown rank."),
        (len, "A shape of unknown rank has no length."),
        (iter, "A shape of unknown rank cannot be iterated over."),
    ],
)
def test_an_unknown_rank_is_reported(ask, what):
    with error_saying(ValueError, what, fix="specify the rank, for example [None, None]."):
        ask(TensorShape(None))


@pytest.mark.parametrize(
    ("check", "what"),
    [
        (lambda s: s.with_rank(1), "Shape (2, None) must have rank 1."),
        (lambda s: s.with_rank_at_least(3), "Shape (2, None) must have rank at least 3."),
        (lambda s: s.with_rank_at_most(1), "Shape (2, None) must have rank at most 1."),
        (lambda s: s.assert_has_rank(3), "Shape (2, None) must have rank 3."),
        (lambda s: s.assert_same_rank([1]), "Shapes (2, None) and (1,) must have the same rank."),
        (
            lambda s: s.assert_is_compatible_with([3, 1]),
            "Shapes (2, None) and (3, 1) are incompatible.",
        ),
        (lambda s: s.assert_is_fully_defined(), "Shape (2, None) is not fully defined."),
    ],
)
def test_a_check_that_fails_names_the_shapes(check, what):
    with pytest.raises(ValueError, match=f"^{re.escape(what)}\n  at:  .*test_shapes.py:"):
        check(TensorShape([2, None]))


@pytest.mark.parametrize(
    ("key", "known", "unknown"),
    [
        (slice(None), [1, None, 3], None),
        (slice(1, None), [None, 3], None),
        (slice(None, 2), [1, None], [None, None]),
        (slice(1, 2), [None], [None]),
        (slice(2, 1), [], []),
        (slice(None, -1), [1, None], None),
        (slice(None, None, 2), [1, 3], None),
        (slice(0, 2, 2), [1], None),
    ],
)
def test_a_slice_of_a_shape_is_a_shape(key, known, unknown):
    assert TensorShape([1, None, 3])[key].dims == known
    assert TensorShape(None)[key].dims == unknown


def test_a_dimension_is_taken_by_its_number():
    assert (TensorShape([1, None])[0], TensorShape([1, None])[-1], TensorShape(None)[7]) == (
        1,
        None,
        None,
    )
    with pytest.raises(IndexError):
        TensorShape([1])[1]


@pytest.mark.parametrize("other", ["3", [2.5], [-1], object(), None, [3, None], [4]])
def test_a_shape_is_not_equal_to_other_values(other):
    assert TensorShape([3]) != other


@pytest.mark.parametrize(
    ("shape", "shown", "text"),
    [
        (None, "TensorShape(None)", "<unknown>"),
        ([], "TensorShape([])", "()"),
        ([None], "TensorShape([None])", "(None,)"),
        ([1, 2], "TensorShape([1, 2])", "(1, 2)"),
    ],
)
def test_shapes_print_as_tensorflows_do(shape, shown, text):
    assert (repr(TensorShape(shape)), str(TensorShape(shape))) == (shown, text)


def test_only_the_unknown_shape_is_false():
    assert not TensorShape(None)
    assert TensorShape([])
    assert [1] + TensorShape([2]) == [1, 2]  # noqa: RUF005 - the operator is what is tested


@pytest.fixture
def shape():
    return next(iter(tf.data.Dataset.from_tensors(np.zeros((3, 2))))).shape


def test_the_shape_of_an_element_is_equal_to_lists_tuples_and_tensor_shapes(shape):
    assert shape == [3, 2]
    assert shape == (3, 2)
    assert shape == TensorShape([3, 2])
    assert shape == [3, 2]
    assert shape != [3]
    assert shape != [3, None]
    assert next(iter(tf.data.Dataset.from_tensors("a"))).shape == []


def test_the_shape_of_an_element_is_a_tuple_to_whoever_takes_tuples(shape):
    assert {shape: 1}[3, 2] == 1
    assert (str(shape), pickle.loads(pickle.dumps(shape))) == ("(3, 2)", (3, 2))
    assert np.ones(shape).shape == jnp.ones(shape).shape == (3, 2)
    assert tf.nest.flatten(shape) == jax.tree.leaves(shape) == [3, 2]


def test_the_shape_of_an_element_answers_as_a_tensor_shape_does(shape):
    assert (shape.rank, shape.ndims, shape.as_list(), shape.num_elements()) == (2, 2, [3, 2], 6)
    assert shape.is_fully_defined()
    assert shape.is_compatible_with([None, 2])
    assert not shape.is_compatible_with([None])
    assert (shape[1:].as_list(), (shape[:1] + [7]).as_list()) == ([2], [3, 7])  # noqa: RUF005
    assert ([1] + shape).as_list() == [1, 3, 2]  # noqa: RUF005 - the operator is what is tested
    assert shape + TensorShape([None]) == TensorShape([3, 2, None])


def test_a_shape_that_is_known_becomes_a_tensor_of_its_lengths():
    made = tf.data.Dataset.from_tensors(TensorShape([1, 2]))
    assert made.element_spec == tf.TensorSpec([2], tf.int32)
    assert tf.constant(TensorShape([])).shape == (0,)
    with pytest.raises(ValueError, match=r"fully known shape, but got TensorShape"):
        tf.constant(TensorShape([1, None]))
