"""Functions that run per element compute in the same dtypes as traced functions."""

import warnings

import jax.numpy as jnp
import numpy as np
import pytest

import evenfeed as tf
from evenfeed.core.promotion import PromotingTensor, array_of_list
from evenfeed.core.tensor_types import HostTensor

DTYPES = [
    "bool",
    "uint8",
    "int8",
    "uint16",
    "int16",
    "int32",
    "uint32",
    "int64",
    "uint64",
    "float16",
    "bfloat16",
    "float32",
    "float64",
    "complex64",
]


def tensor(dtype, shape=3):
    return np.ones(shape).astype(tf.as_dtype(dtype)).view(PromotingTensor)


def dtype_of(compute):
    """Return the name of the dtype of a result, or "refused"."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            return tf.as_dtype(compute().dtype).name
        except (TypeError, ValueError, OverflowError):
            return "refused"


def traced(function, *dtypes):
    parts = tuple(np.ones((1, 3)).astype(tf.as_dtype(dtype)) for dtype in dtypes)
    return dtype_of(lambda: tf.data.Dataset.from_tensor_slices(parts).map(function).element_spec)


def test_a_constant_of_numpy_counts_as_the_number_that_it_is():
    x = tensor("int32")
    for constant, dtype in [(1, "int32"), (2**40, "int64"), (-(2**31), "int32"), (2**31, "int64")]:
        assert dtype_of(lambda constant=constant: x + np.int64(constant)) == dtype
    for constant in (np.float64(0.5), np.float64(1e300), np.float32(0.5)):
        assert dtype_of(lambda constant=constant: x * constant) == "float32"
        assert dtype_of(lambda constant=constant: tensor("float64") * constant) == "float64"


UNARY = [
    "sqrt",
    "exp",
    "log1p",
    "sin",
    "arctan",
    "abs",
    "negative",
    "sign",
    "floor",
    "square",
    "logical_not",
    "isnan",
    "invert",
]
BINARY = [
    "add",
    "subtract",
    "multiply",
    "true_divide",
    "floor_divide",
    "mod",
    "power",
    "maximum",
    "fmin",
    "arctan2",
    "hypot",
    "logaddexp",
    "equal",
    "less",
    "logical_and",
    "bitwise_and",
    "left_shift",
    "copysign",
]
# Cases where JAX and NumPy compute different values, not only different dtypes, such as the square of a bool.
OTHERS = {("sign", "bool"), ("hypot", "complex64"), ("copysign", "complex64")}


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_tensor_have_the_dtype_that_they_have_traced(name):
    for dtype in DTYPES:
        if (name, dtype) not in OTHERS:
            expected = traced(getattr(jnp, name), dtype)
            assert dtype_of(lambda d=dtype: getattr(np, name)(tensor(d))) == expected, dtype


@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_tensors_have_the_dtype_that_they_have_traced(name):
    pairs = [("uint8", "int8"), ("uint8", "int32"), ("int32", "float32"), ("int64", "float32")]
    pairs += [("int64", "float16"), ("uint64", "int64"), ("float16", "bfloat16"), ("bool", "int8")]
    pairs += [("float32", "float64"), ("int64", "int32"), ("bool", "bool"), ("float16", "float32")]
    for pair in [*pairs, *((dtype, dtype) for dtype in DTYPES[1:-1])]:
        expected = traced(getattr(jnp, name), *pair)
        found = dtype_of(lambda p=pair: getattr(np, name)(*map(tensor, p)))
        assert found == expected, pair


CONSTANTS = {
    "int": 2,
    "float": 2.0,
    "bool": True,
    "float64": np.float64(2),
    "float32": np.float32(2),
    "int64": np.int64(2),
    "array of float64": np.ones(3),
    "array of float32": np.ones(3, np.float32),
    "array of int64": np.arange(3),
    "array of int32": np.arange(3, dtype=np.int32),
    "array of ids": np.array([1, 2**40, 3]),
}


@pytest.mark.parametrize("label", CONSTANTS)
@pytest.mark.parametrize("name", ["add", "true_divide", "maximum"])
def test_other_operands_are_promoted_as_in_a_trace(name, label):
    constant = CONSTANTS[label]
    for dtype in DTYPES[:-1]:
        for swapped in (False, True):

            def compute(module, x, swapped=swapped):
                operands = (constant, x) if swapped else (x, constant)
                return getattr(module, name)(*operands)

            expected = traced(lambda x, compute=compute: compute(jnp, x), dtype)
            found = dtype_of(lambda d=dtype, compute=compute: compute(np, tensor(d)))
            assert found == expected, (dtype, swapped)


@pytest.mark.parametrize("exponent", [2, 0.5])
def test_powers_have_the_dtype_that_they_have_traced(exponent):
    for dtype in DTYPES[1:]:
        expected = traced(lambda x: x**exponent, dtype)
        assert dtype_of(lambda d=dtype: tensor(d) ** exponent) == expected, dtype


def test_a_power_is_as_wide_as_its_exponent():
    powers = tf.data.Dataset.range(45).map(lambda x: 2**x)
    assert powers.element_spec.dtype == tf.int64
    assert max(powers.as_numpy_iterator()) == 2**44


@pytest.mark.parametrize("dtype", DTYPES)
def test_a_list_is_promoted_as_one_of_its_numbers(dtype):
    for values, one in (([0.5, 0.25, 2.0], 0.5), ([1, 2, 3], 1), ([True, False, True], True)):
        x = tensor(dtype)
        assert dtype_of(lambda x=x, v=values: x + v) == dtype_of(lambda x=x, o=one: x + o)
        assert dtype_of(lambda x=x, v=values: v * x) == dtype_of(lambda x=x, o=one: o * x)


def test_a_list_has_the_values_of_its_numbers():
    assert (tensor("float32") - [0.5, 0.25, 2.0]).tolist() == [0.5, 0.75, -1.0]
    assert (tensor("uint8", (2, 2)) / [[1, 2], [4, 8]]).tolist() == [[1, 0.5], [0.25, 0.125]]
    assert (tensor("float32") == [1, 2, 1]).tolist() == [True, False, True]
    with pytest.raises(OverflowError):
        np.add(tensor("uint8"), [300, 1, 2])
    assert array_of_list(["a"], tf.as_dtype("int32")).dtype.kind == "U"


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "name",
    [
        "mean",
        "std",
        "var",
        "max",
        "min",
        "sum",
        "prod",
        "cumsum",
        "cumprod",
        "argmax",
        "argmin",
        "argsort",
        "round",
    ],
)
def test_methods_have_the_dtype_that_they_have_traced(name, dtype):
    expected = traced(lambda x: getattr(x, name)(), dtype)
    found = dtype_of(getattr(tensor(dtype), name))
    if expected != "refused":
        assert found == expected


def test_items_and_results_stay_promoting():
    x = tensor("uint8")
    for value in (x[0], x[:2], x + 1, x.max(), x.sum(), -x, np.flip(x), next(iter(x)), x.T):
        assert isinstance(value, PromotingTensor), value
    assert (x[0] / 2).dtype == np.float32
    quotient, rest = divmod(x, 2)
    assert isinstance(quotient, PromotingTensor)
    assert rest.tolist() == [1, 1, 1]


def test_calls_with_a_dtype_or_an_output_are_left_to_numpy():
    x = tensor("uint8")
    assert np.add(x, 1, dtype=np.float64).dtype == np.float64
    out = np.zeros(3)
    assert np.true_divide(x, 2, out=out) is out
    assert out.tolist() == [0.5] * 3
    assert np.add.reduce(x).dtype == np.uint64
    assert x.sum(dtype=np.uint64).dtype == np.uint64
    assert x.cumsum(0, np.int64).dtype == np.int64
    assert np.add.outer(x, x).shape == (3, 3)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", [float, int, bool, "float64", np.int64, tf.float32])
def test_float_and_int_are_default_dtypes(kind, dtype):
    expected = traced(lambda x: x.astype(kind), dtype)
    assert dtype_of(lambda: tensor(dtype).astype(kind)) == expected


def test_single_numbers_are_keys_and_round():
    x = tensor("int32")
    assert {1: "one"}[x[0]] == "one"
    assert round(tensor("float32")[0] / 3, 2) == np.float32(0.33)
    with pytest.raises(TypeError, match="unhashable"):
        hash(x)


def test_plain_numpy_is_one_call_away():
    assert (np.asarray(tensor("uint8")) / 2).dtype == np.float64
    assert type(tensor("uint8").numpy()) is np.ndarray


@pytest.mark.parametrize("kind", [HostTensor, PromotingTensor])
def test_augmented_assignment_rebinds_and_does_not_mutate(kind):
    source = np.ones(3, np.uint8)
    source.flags.writeable = False
    x = before = source.view(kind)
    x += 1
    x *= 2
    x -= 1
    x //= 1
    x **= 1
    x %= 8
    x |= 0
    x &= 7
    x ^= 0
    x <<= 1
    x >>= 1
    assert x.tolist() == [3, 3, 3]
    x /= 2
    assert x.tolist() == [1.5] * 3
    assert before.tolist() == [1, 1, 1]
