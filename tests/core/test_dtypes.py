import inspect

import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from evenfeed.core import dtypes

ALL = {name: value for name, value in vars(dtypes).items() if isinstance(value, np.dtype)}


@pytest.mark.parametrize("name", ALL)
def test_every_dtype_is_found_by_its_name_and_itself(name):
    assert dtypes.as_dtype(name) == ALL[name]
    assert dtypes.as_dtype(ALL[name]) is ALL[name] or name in ("half", "double")


@pytest.mark.parametrize("dtype", ALL.values())
def test_the_name_of_a_dtype_leads_back_to_it(dtype):
    assert dtypes.as_dtype(dtypes.name_of(dtype)) == dtype


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (float, dtypes.float32),
        (bool, dtypes.bool),
        (object, dtypes.string),
        ("float", dtypes.float32),
        ("double", dtypes.float64),
        (np.int8, dtypes.int8),
        (np.dtype(">i4"), dtypes.int32),
        (np.dtype("<f8"), dtypes.float64),
        (np.dtype("S7"), dtypes.string),
        (np.dtype("U7"), dtypes.string),
        (np.dtypes.StringDType(), dtypes.string),
        (np.str_, dtypes.string),
        (ml_dtypes.bfloat16, dtypes.bfloat16),
        (jnp.bfloat16, dtypes.bfloat16),
        (jnp.int16, dtypes.int16),
    ],
)
def test_types_of_python_numpy_and_jax_have_a_dtype(value, expected):
    assert dtypes.as_dtype(value) == expected
    assert dtypes.as_dtype(value).isnative


@pytest.mark.parametrize(
    ("value", "fix"),
    [
        ("int33", "did you mean evenfeed.int32?"),
        ("flaot32", "did you mean evenfeed.float32?"),
        (int, "choose the width: evenfeed.int32 or evenfeed.int64."),
        (str, "pass one of: float16, "),
        (None, "pass one of: float16, "),
        ("", "pass one of: float16, "),
        (7.5, "pass one of: float16, "),
        (np.dtype("datetime64[s]"), "pass one of: float16, "),
        (np.dtype([("a", "i4")]), "pass one of: float16, "),
        (np.dtype("V8"), "pass one of: float16, "),
    ],
)
def test_an_invalid_dtype_is_a_type_error_with_a_fix(value, fix):
    with pytest.raises(TypeError) as caught:
        dtypes.as_dtype(value)
    line = inspect.currentframe().f_lineno - 1
    what, at, fix_line = str(caught.value).split("\n")
    assert what == f"{value!r} is not a dtype."
    assert at == f"  at:  tests/core/test_dtypes.py:{line}"
    assert fix_line.startswith(f"  fix: {fix}")


def test_text_is_named_string():
    assert dtypes.name_of(dtypes.string) == "string"
