import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.saying import error_saying

from evenfeed.core import dtypes
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.specs import NoneTensorSpec, TensorSpec
from evenfeed.plan.sources import Range, Tensor, TensorSlice

numbers = st.integers(-(2**63), 2**63 - 1)


@given(numbers, numbers, numbers.filter(bool))
def test_a_range_has_the_size_of_pythons(start, stop, step):
    expected = range(start, stop, step)
    size = Range(start, stop, step).size
    assert size == (0 if not expected else (expected[-1] - start) // step + 1)


@pytest.mark.parametrize("dtype", [dtypes.int32, dtypes.float16, dtypes.bfloat16, dtypes.complex64])
def test_a_range_counts_in_numbers_of_any_kind(dtype):
    assert Range(0, 3, dtype=dtype).element_spec == TensorSpec([], dtype)


@pytest.mark.parametrize("dtype", [dtypes.bool, dtypes.string])
def test_a_range_does_not_count_in_anything_else(dtype):
    what = f"output_type of a range must be numeric, but got {dtypes.name_of(dtype)}."
    fix = "pass an integer, float or complex dtype."
    with error_saying(InvalidArgumentError, what, fix=fix):
        Range(0, 3, dtype=dtype)


def test_a_step_of_0_is_an_error():
    fix = "pass a positive step to count up, or a negative step to count down."
    with error_saying(InvalidArgumentError, "The step of a range must not be 0.", fix=fix):
        Range(0, 3, 0)


def test_a_tensor_is_one_element_as_it_is():
    node = Tensor({"b": 0, "a": 0}, [np.zeros((2, 3)), None])
    assert node.size == 1
    assert node.element_spec == {"b": NoneTensorSpec(), "a": TensorSpec([2, 3], "float64")}


def test_slices_are_rows():
    node = TensorSlice((0, 0), [np.zeros((4, 3), np.int8), np.array(["a"] * 4, object)])
    assert node.size == 4
    assert node.element_spec == (TensorSpec([3], "int8"), TensorSpec([], "string"))


def test_the_size_of_slices_ignores_none():
    node = TensorSlice((0, 0), [None, np.zeros(4)])
    assert node.size == 4
    assert node.element_spec == (NoneTensorSpec(), TensorSpec([], "float64"))


@pytest.mark.parametrize("arrays", [[], [None, None]])
@pytest.mark.parametrize(
    ("node", "kind"), [(Tensor, InvalidArgumentError), (TensorSlice, ValueError)]
)
def test_elements_without_a_tensor_are_an_error(node, kind, arrays):
    what = "The elements of a dataset must contain at least one tensor."
    with error_saying(kind, what, fix="pass an array, or a structure that contains one."):
        node(tuple(arrays), arrays)


def test_a_scalar_has_no_slices():
    fix = "pass arrays with a first dimension, or call Dataset.from_tensors."
    what = "from_tensor_slices cannot slice a scalar."
    with error_saying(ValueError, what, fix=fix):
        TensorSlice((0, 0), [np.zeros(2), np.array(1)])


def test_parts_of_several_lengths_are_an_error_that_shows_them():
    what = (
        "All components must have the same first dimension, but they have {'b': 3, 'a': (2, None)}."
    )
    with error_saying(ValueError, what, fix="cut the components to the same length first."):
        TensorSlice({"b": 0, "a": (0, 0)}, [np.zeros(2), None, np.zeros(3)])
