import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from tests.saying import error_saying

from evenfeed.core import dtypes
from evenfeed.core.conversion import is_tensor, shortened, to_array, to_component
from evenfeed.core.errors import InvalidArgumentError


class Foreign:
    """An array of another library."""

    shape = (2,)
    dtype = np.dtype("int16")

    def __array__(self, dtype=None, copy=None):
        return np.array([1, 2], "int16")


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (3, "int32", 3),
        (2**31 - 1, "int32", 2**31 - 1),
        (2**31, "int64", 2**31),
        (-(2**31), "int32", -(2**31)),
        (-(2**31) - 1, "int64", -(2**31) - 1),
        (2.5, "float32", 2.5),
        (True, "bool", True),
        (1j, "complex128", 1j),
        ([1, 2.5], "float32", [1, 2.5]),
        ([1, 2**40], "int64", [1, 2**40]),
        ([1, 2j], "complex128", [1, 2j]),
        ((1, 2), "int32", [1, 2]),
        (range(3), "int32", [0, 1, 2]),
        ([], "float32", []),
        ([[], []], "float32", [[], []]),
        ([np.int64(5), 2], "int32", [5, 2]),
        ([np.float64(1), 1.5], "float64", [1, 1.5]),
        ([np.float16(1), 1.5], "float16", [1, 1.5]),
        ([1.5, np.float64(1)], "float32", [1.5, 1]),
        ([ml_dtypes.bfloat16(1.5)], "bfloat16", [1.5]),
        ([np.array(1.5), 2.0], "float64", [1.5, 2]),
        ([np.arange(2), [5, 6]], "int32", [[0, 1], [5, 6]]),
        ([jnp.int32(1), 2], "int32", [1, 2]),
        ([jnp.arange(2), [5, 6]], "int32", [[0, 1], [5, 6]]),
        (jnp.arange(3, dtype="int16"), "int16", [0, 1, 2]),
        (Foreign(), "int16", [1, 2]),
        ([Foreign(), [3, 4]], "int32", [[1, 2], [3, 4]]),
        (np.float64(2), "float64", 2.0),
        (np.array([1, 2], ">i4"), "int32", [1, 2]),
    ],
)
def test_values_get_tensorflows_dtypes(value, dtype, expected):
    array = to_array(value)
    assert array.dtype == dtypes.as_dtype(dtype)
    assert array.dtype.isnative
    np.testing.assert_array_equal(array, np.array(expected, array.dtype))


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("ä€", "ä€".encode()),
        (b"\xff\x00", b"\xff\x00"),
        ("a\0", b"a\0"),
        ("", b""),
        (["a", b"b"], [b"a", b"b"]),
        ([["a\0"], [b"\0\0"]], [[b"a\0"], [b"\0\0"]]),
        (np.array(["a", "bc"]), [b"a", b"bc"]),
        (np.array(["ä"], np.dtypes.StringDType()), ["ä".encode()]),
        (np.array([["a"], [b"b"]], object), [[b"a"], [b"b"]]),
        (np.str_("x"), b"x"),
    ],
)
def test_text_becomes_bytes(value, expected):
    array = to_array(value)
    assert array.dtype == dtypes.string
    assert array.tolist() == expected
    assert {type(item) for item in array.flat} == {bytes}


def test_an_array_is_not_copied():
    numbers, texts = np.arange(6).reshape(2, 3), np.array([b"a", b"b"], object)
    assert np.shares_memory(to_array(numbers), numbers)
    assert to_array(texts) is texts
    assert np.shares_memory(to_array(numbers, dtypes.int64), numbers)


@given(
    hnp.arrays(
        st.sampled_from(["i1", "u8", "f4", "?", "c8"]), hnp.array_shapes(min_dims=0, min_side=0)
    )
)
def test_an_array_keeps_its_dtype_shape_and_values(array):
    np.testing.assert_array_equal(to_array(array), array, strict=True)


@given(hnp.arrays("i4", hnp.array_shapes(max_dims=4)))
def test_nested_lists_of_an_array_convert_back_to_it(array):
    np.testing.assert_array_equal(to_array(array.tolist()), array, strict=True)


@given(st.lists(st.text()))
def test_text_can_be_decoded_again(texts):
    assert [item.decode() for item in to_array(np.array([*texts, ""], object))] == [*texts, ""]


def test_a_long_list_and_a_deep_one_are_no_trouble():
    assert to_array(list(range(300_000))).sum(dtype="int64") == 300_000 * 299_999 // 2
    deep = 7
    for _ in range(50):
        deep = [deep]
    assert to_array(deep).shape == (1,) * 50


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        (3, "float32", 3.0),
        (3, "bfloat16", 3.0),
        (True, "int32", 1),
        (1.5, "complex64", 1.5),
        (2**63, "uint64", 2**63),
        (1e39, "float64", 1e39),
        (1e39, "float32", np.inf),
        ([], "int32", []),
        ([[]], "string", [[]]),
        ([-8, 7], "int4", [-8, 7]),
        (np.array([2.5]), "int32", [2]),
        (np.array([300]), "uint8", [44]),
        ("a", "string", b"a"),
    ],
)
def test_a_requested_dtype_is_used(value, dtype, expected):
    array = to_array(value, dtypes.as_dtype(dtype))
    assert array.dtype == dtypes.as_dtype(dtype)
    assert array.tolist() == expected


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (2.5, "int32"),
        (1, "bool"),
        ([1, 2], "string"),
        ("a", "int32"),
        (1j, "float32"),
        (True, "string"),
        (1.5, "int4"),
        (np.array(["a"]), "int32"),
        (np.array([1]), "string"),
    ],
)
def test_a_dtype_that_cannot_hold_the_value_is_a_type_error(value, dtype):
    with error_saying(
        TypeError,
        f"{value!r} cannot become a tensor of dtype {dtype}.",
        fix="pass another dtype, or convert the value with evenfeed.cast.",
    ):
        to_array(value, dtypes.as_dtype(dtype))


@pytest.mark.parametrize(
    ("value", "dtype", "what"),
    [
        (300, "uint8", "300 does not fit into uint8, which holds 0 to 255."),
        ([0, -1], "uint8", "-1 does not fit into uint8, which holds 0 to 255."),
        (
            2**40,
            "int32",
            f"{2**40} does not fit into int32, which holds {-(2**31)} to {2**31 - 1}.",
        ),
        (8, "int4", "8 does not fit into int4, which holds -8 to 7."),
        (16, "uint4", "16 does not fit into uint4, which holds 0 to 15."),
    ],
)
def test_a_number_that_does_not_fit_never_wraps(value, dtype, what):
    fix = "pass a wider dtype, or call evenfeed.cast if the value should wrap around."
    with error_saying(InvalidArgumentError, what, fix=fix):
        to_array(value, dtypes.as_dtype(dtype))


@pytest.mark.parametrize(
    ("value", "what", "fix"),
    [
        (2**63, f"{2**63} does not fit into int64.", "pass dtype=evenfeed.uint64 or …"),
        ([0, -(2**63) - 1], f"{-(2**63) - 1} does not fit into int64.", "pass dtype=…"),
        (
            1e39,
            "1e+39 does not fit into float32, the default for Python floats.",
            "pass dtype=evenfeed.float64.",
        ),
        ([1.0, -1e300], "-1e+300 does not fit into float32, …", "pass dtype=evenfeed.float64."),
        (
            [True, 1],
            "A tensor holds one kind of value, but [True, 1] mixes bool and int.",
            "convert them …",
        ),
        (
            [1, "a"],
            "A tensor holds one kind of value, but [1, 'a'] mixes int and text.",
            "convert them …",
        ),
        (None, "None of type NoneType cannot become a tensor.", "pass numbers, text, bytes, …"),
        ({"a": 1}, "{'a': 1} of type dict cannot become a tensor.", "pass one dict of …"),
        (
            [[1], [2, 3]],
            "[[1], [2, 3]] is not rectangular: its parts have lengths [1, 2].",
            "pad the parts to one shape, or pass evenfeed.ragged.constant(values).",
        ),
        (
            [[], [1]],
            "[[], [1]] is not rectangular: its parts have lengths [0, 1].",
            "pad the parts …",
        ),
        (
            [[1], 2],
            "[[1], 2] is not rectangular: its parts have lengths [1, '-'].",
            "pad the parts …",
        ),
        (
            [1, [2]],
            "[1, [2]] is not rectangular: its parts have lengths ['-', 1].",
            "pad the parts …",
        ),
        (
            [np.arange(2), np.arange(3)],
            "[array([0, 1]), array([0, 1, 2])] is not rectangular: …",
            "pad …",
        ),
        (
            np.array([1, "a"], object),
            "An array of objects must hold only text, but got 1 of type int.",
            "pass text, …",
        ),
        (
            np.datetime64("2020-01-01"),
            "An array of dtype datetime64[D] cannot become a tensor.",
            "convert it …",
        ),
        (
            np.array([(1,)], [("a", "i4")]),
            "An array of dtype [('a', '<i4')] cannot …",
            "convert it …",
        ),
    ],
)
def test_a_value_that_cannot_become_a_tensor_is_a_value_error(value, what, fix):
    with error_saying(ValueError, what, fix=fix):
        to_array(value)


@pytest.mark.parametrize(
    "value", [np.arange(2), np.int8(1), np.array("a"), jnp.arange(2), Foreign()]
)
def test_arrays_of_any_library_are_tensors(value):
    assert is_tensor(value)


@pytest.mark.parametrize(
    "value", [1, 1.5, 1j, True, "a", b"a", None, [1], (1,), {}, np.ndarray, object()]
)
def test_python_values_are_not_tensors(value):
    assert not is_tensor(value)


def test_a_long_value_is_cut_in_messages():
    assert shortened("a" * 78) == repr("a" * 78)
    assert shortened("a" * 79) == "'" + "a" * 76 + "..."
    assert len(shortened(list(range(1000)))) == 80


@pytest.mark.parametrize("value", ["a\udc80", ["a\udc80"], np.array(["a\udc80"])])
def test_half_of_a_surrogate_pair_is_an_error(value):
    what = r"'a\udc80' cannot be encoded as UTF-8: it has half of a surrogate pair."
    with error_saying(ValueError, what, fix="pass bytes; …"):
        to_array(value)


@pytest.mark.parametrize(
    "dtype", ["uint8", "int16", "int64", "uint64", "float16", "float64", "bool"]
)
@pytest.mark.parametrize("shape", [(2,), (), (0,), (2, 0)])
def test_arrays_keep_their_dtype_in_lists_in_elements(dtype, shape):
    part = np.ones(shape, dtype)
    for value in ([part, part], [[part], [part]], [[part], part[None]]):
        found = to_component(value)
        assert found.dtype == dtype
        np.testing.assert_array_equal(found, np.array(value, dtype))


@pytest.mark.parametrize(
    "value",
    [
        [np.int8([1]), np.int64([2])],
        [np.float64([1]), np.float32([2])],
        [np.arange(2), [3, 4]],
        [[3, 4], np.arange(2)],
        [(np.arange(2),)],
        [np.int16(1), np.int16(2)],
        [np.array(["a"]), np.array(["bc"])],
        [np.array([1], object)],
        [],
        [[]],
        3,
        "a",
        np.arange(2),
    ],
)
def test_other_values_convert_the_same_in_an_element(value):
    one, other = to_component(value), to_array(value)
    assert one.dtype == other.dtype
    np.testing.assert_array_equal(one, other)
