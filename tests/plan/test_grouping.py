import numpy as np
import pytest
from tests.saying import error_saying
from tests.unknown import UnknownSize

from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.optional import OptionalSpec
from evenfeed.core.specs import NoneTensorSpec, TensorSpec
from evenfeed.plan.grouping import Batch
from evenfeed.plan.ordering import Repeat
from evenfeed.plan.sources import Range, Tensor


@pytest.mark.parametrize(
    ("child", "batch_size", "kept", "dropped"),
    [
        (Range(0, 6), 2, 3, 3),
        (Range(0, 5), 2, 3, 2),
        (Range(0, 1), 2, 1, 0),
        (Range(0, 0), 2, 0, 0),
        (Range(0, 3), 10**18, 1, 0),
        (Repeat(Range(0, 3), -1), 2, -1, -1),
        (UnknownSize(), 2, -2, -2),
    ],
)
def test_a_short_last_batch_counts_unless_it_is_dropped(child, batch_size, kept, dropped):
    assert Batch(child, batch_size).size == kept
    assert Batch(child, batch_size, drop_remainder=True).size == dropped
    assert type(Batch(child, batch_size).size) is int


def test_the_leading_axis_is_known_if_a_short_batch_is_dropped():
    child = Tensor({"b": 0, "a": 0}, [np.zeros(3), None])
    expected = {"b": NoneTensorSpec(), "a": TensorSpec([None, 3], "float64")}
    assert Batch(child, 2).element_spec == expected
    expected = {"b": NoneTensorSpec(), "a": TensorSpec([2, 3], "float64")}
    assert Batch(child, 2, drop_remainder=True).element_spec == expected


@pytest.mark.parametrize("batch_size", [0, -1])
def test_a_batch_of_nothing_is_an_error(batch_size):
    what = f"batch_size must be at least 1, but got {batch_size}."
    fix = "pass the number of elements that make up one batch."
    with error_saying(InvalidArgumentError, what, fix=fix):
        Batch(Range(0, 3), batch_size)


def test_values_that_cannot_be_stacked_cannot_be_batched():
    class Optionals(UnknownSize):
        element_spec = OptionalSpec(TensorSpec([]))

    with pytest.raises(TypeError, match=r"OptionalSpec.* cannot be batched"):
        _ = Batch(Optionals(), 2).element_spec
