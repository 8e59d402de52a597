import pytest
from tests.saying import error_saying
from tests.unknown import UnknownSize

from evenfeed.core import dtypes
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.specs import TensorSpec
from evenfeed.plan.combining import Concatenate, Zip
from evenfeed.plan.grouping import Batch
from evenfeed.plan.ordering import Repeat
from evenfeed.plan.sources import Range

ENDLESS = Repeat(Range(0, 3), -1)
NUMBER = TensorSpec([], "int64")


@pytest.mark.parametrize(
    ("parts", "size"),
    [
        ((Range(0, 3), Range(0, 5)), 3),
        ((Range(0, 3), ENDLESS), 3),
        ((Range(0, 3), Range(0, 0)), 0),
        ((ENDLESS, ENDLESS), -1),
        ((UnknownSize(), Range(0, 3)), -2),
        ((UnknownSize(), ENDLESS), -2),
        ((Range(0, 3),), 3),
    ],
)
def test_a_zip_is_as_long_as_its_shortest_part(parts, size):
    assert Zip(tuple(range(len(parts))), parts).size == size


def test_a_zip_has_the_structure_that_was_given():
    parts = (Range(0, 3), Batch(Range(0, 3), 2))
    batch = TensorSpec([None], "int64")
    assert Zip((0, 0), parts).element_spec == (NUMBER, batch)
    assert Zip({"b": 0, "a": (0,)}, parts).element_spec == {"a": (NUMBER,), "b": batch}
    assert Zip(0, parts[:1]).element_spec == NUMBER


def test_a_zip_of_nothing_is_an_error():
    what, fix = "zip needs at least one dataset.", "pass datasets, or a tuple or dict of them."
    with error_saying(InvalidArgumentError, what, fix=fix):
        Zip((), ())


@pytest.mark.parametrize(
    ("first", "second", "size"),
    [
        (Range(0, 3), Range(0, 5), 8),
        (Range(0, 0), Range(0, 0), 0),
        (ENDLESS, Range(0, 5), -1),
        (Range(0, 5), ENDLESS, -1),
        (UnknownSize(), Range(0, 5), -2),
        (Range(0, 5), UnknownSize(), -2),
        (UnknownSize(), ENDLESS, -1),
    ],
)
def test_sizes_are_added(first, second, size):
    assert Concatenate(first, second).size == size


@pytest.mark.parametrize(
    ("first", "second", "shape"),
    [
        (Batch(Range(0, 4), 2), Batch(Range(0, 4), 2, drop_remainder=True), [None]),
        (
            Batch(Range(0, 4), 2, drop_remainder=True),
            Batch(Range(0, 4), 2, drop_remainder=True),
            [2],
        ),
        (
            Batch(Range(0, 4), 2, drop_remainder=True),
            Batch(Range(0, 4), 3, drop_remainder=True),
            [None],
        ),
        (Range(0, 3), Batch(Range(0, 4), 2), None),
    ],
)
def test_a_shape_is_what_both_have_in_common(first, second, shape):
    assert Concatenate(first, second).element_spec == TensorSpec(shape, "int64")


def test_two_dtypes_are_an_error():
    what = (
        "Concatenated datasets must have compatible elements, but have "
        "TensorSpec(shape=(), dtype=tf.int64, name=None) and "
        "TensorSpec(shape=(), dtype=tf.int32, name=None)."
    )
    fix = "give both datasets the same dtypes first."
    with error_saying(TypeError, what, fix=fix):
        Concatenate(Range(0, 3), Range(0, 3, dtype=dtypes.int32))


def test_two_structures_are_an_error():
    with pytest.raises(TypeError, match="second dataset"):
        Concatenate(Range(0, 3), Zip((0,), (Range(0, 3),)))
