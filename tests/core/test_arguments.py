import re

import jax.numpy as jnp
import numpy as np
import pytest

from evenfeed.core.arguments import whole_number


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (3, 3),
        (-(2**63), -(2**63)),
        (2**63 - 1, 2**63 - 1),
        (True, 1),
        (np.uint8(7), 7),
        (np.array(7), 7),
        (np.float32(7), 7),
        (np.array(7.0), 7),
        (jnp.int32(7), 7),
    ],
)
def test_whole_numbers_of_any_library_become_an_int(value, expected):
    assert whole_number(value, "count") == expected
    assert type(whole_number(value, "count")) is int


@pytest.mark.parametrize(
    "value", [2.5, 2.0, "2", None, [2], np.float32(2.5), jnp.float32(2), np.array([2, 3])]
)
def test_anything_else_is_a_type_error_that_names_the_argument(value):
    said = re.escape(
        f"count must be a whole number, but got {value!r} of type {type(value).__name__}."
    )
    with pytest.raises(
        TypeError, match=rf"{said}\n  at:  .*test_arguments.py:\d+\n  fix: pass an int as count\."
    ):
        whole_number(value, "count")


@pytest.mark.parametrize("value", [2**63, -(2**63) - 1, 10**100])
def test_a_number_beyond_64_bits_is_a_value_error(value):
    with pytest.raises(ValueError, match=r"count does not fit into 64 bits: -?[0-9.]+"):
        whole_number(value, "count")
