"""Functions of two values: `add`, `divide`, `pow`, `maximum` and so on."""

# ruff: noqa: A001, ARG001 - TensorFlow's names; there is no graph to show `name` in

from collections.abc import Callable, Iterable
from functools import cache, reduce
from typing import Any, cast

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.errors import InvalidArgumentError, zero_divisor
from evenfeed.core.floor_division import floored_quotient, has_floats
from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.core.tensor_types import host_tensor
from evenfeed.tensors.creation import Tensor
from evenfeed.tensors.device_arrays import is_traced
from evenfeed.tensors.exact_numbers import (
    exact_floor_quotient,
    exact_floor_remainder,
    exact_quotient,
    exact_quotient_or_zero,
    exact_square,
)
from evenfeed.tensors.math import kept_nan
from evenfeed.tensors.operands import (
    FLOATS,
    REALS,
    converted_together,
    elementwise,
    is_text,
    wide,
)


def add(x: object, y: object, name: str | None = None) -> Tensor:
    """Add `x` and `y`. Text is joined.

    Examples:
        >>> import evenfeed as tf
        >>> tf.add([1, 2], 10).tolist()
        [11, 12]
    """
    if isinstance(x, RaggedTensor) or isinstance(y, RaggedTensor):
        return x + y  # pyright: ignore[reportOperatorIssue, reportUnknownVariableType]
    left, right = converted_together([x, y])
    if is_text(left) and is_text(right):
        return host_tensor(left) + right
    return elementwise("add", jnp.add, x, y)


def subtract(x: object, y: object, name: str | None = None) -> Tensor:
    """Subtract `y` from `x`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.subtract([1, 2], 10).tolist()
        [-9, -8]
    """
    return elementwise("subtract", jnp.subtract, x, y)


def multiply(x: object, y: object, name: str | None = None) -> Tensor:
    """Multiply `x` and `y`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.multiply([1, 2], 10).tolist()
        [10, 20]
    """
    return elementwise("multiply", jnp.multiply, x, y)


def scalar_mul(scalar: object, x: object, name: str | None = None) -> Tensor:
    """Multiply every value by one number.

    Examples:
        >>> import evenfeed as tf
        >>> tf.math.scalar_mul(3, tf.constant([1, 2])).tolist()
        [3, 6]
    """
    return elementwise("scalar_mul", jnp.multiply, scalar, x)


def divide(x: object, y: object, name: str | None = None) -> Tensor:
    """Divide `x` by `y`. A quotient of integers is a float.

    Examples:
        >>> import evenfeed as tf
        >>> tf.divide([1, 2], 4).tolist()
        [0.25, 0.5]
    """
    return elementwise("divide", _true_quotient, x, y, host=exact_quotient)


def truediv(x: object, y: object, name: str | None = None) -> Tensor:
    """Divide `x` by `y`. A quotient of integers is a float: float64 for 32 and 64 bits, else float32.

    Examples:
        >>> import evenfeed as tf
        >>> tf.truediv([1, 2], 4).tolist()
        [0.25, 0.5]
    """
    return elementwise("truediv", _true_quotient, x, y, host=exact_quotient)


def realdiv(x: object, y: object, name: str | None = None) -> Tensor:
    """Divide floats.

    Examples:
        >>> import evenfeed as tf
        >>> tf.realdiv([1.0, 2.0], 4.0).tolist()
        [0.25, 0.5]
    """
    return elementwise("realdiv", _real_quotient, x, y, accepts=FLOATS, host=exact_quotient)


def divide_no_nan(x: object, y: object, name: str | None = None) -> Tensor:
    """Divide `x` by `y`; the result is 0 where `y` is 0.

    Examples:
        >>> import evenfeed as tf
        >>> tf.math.divide_no_nan([1.0, 2.0], [2.0, 0.0]).tolist()
        [0.5, 0.0]
    """
    return elementwise("divide_no_nan", _quotient_or_zero, x, y, host=exact_quotient_or_zero)


def multiply_no_nan(x: object, y: object, name: str | None = None) -> Tensor:
    """Multiply `x` and `y`; the result is 0 where `y` is 0, even if `x` is NaN or infinite.

    Examples:
        >>> import evenfeed as tf
        >>> tf.math.multiply_no_nan([2.0, float("nan")], [3.0, 0.0]).tolist()
        [6.0, 0.0]
    """
    return elementwise("multiply_no_nan", _product_or_zero(), x, y, accepts=FLOATS)


def floordiv(x: object, y: object, name: str | None = None) -> Tensor:
    """Divide and round down.

    Examples:
        >>> import evenfeed as tf
        >>> tf.math.floordiv([7, -7], 2).tolist()
        [3, -4]
    """
    return elementwise("floordiv", _floor_quotient, x, y, accepts=REALS, host=exact_floor_quotient)


def floormod(x: object, y: object, name: str | None = None) -> Tensor:
    """Return the remainder of a division that rounds down. It has the sign of `y`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.math.floormod([7, -7], 3).tolist()
        [1, 2]
    """
    return elementwise(
        "floormod", _floor_remainder, x, y, accepts=REALS, host=exact_floor_remainder
    )


def truncatediv(x: object, y: object, name: str | None = None) -> Tensor:
    """Divide and round toward 0.

    Examples:
        >>> import evenfeed as tf
        >>> tf.truncatediv([7, -7], 2).tolist()
        [3, -3]
    """
    return elementwise("truncatediv", _truncated_quotient, x, y, accepts=REALS)


def truncatemod(x: object, y: object, name: str | None = None) -> Tensor:
    """Return the remainder of a division that rounds toward 0. It has the sign of `x`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.truncatemod([7, -7], 3).tolist()
        [1, -1]
    """
    return elementwise("truncatemod", _truncated_remainder, x, y, accepts=REALS)


def pow(x: object, y: object, name: str | None = None) -> Tensor:
    """Return `x` to the power of `y`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.pow([2, 3], 2).tolist()
        [4, 9]
    """
    return elementwise("pow", _power, x, y)


def maximum(x: object, y: object, name: str | None = None) -> Tensor:
    """Return the larger one of two values.

    Examples:
        >>> import evenfeed as tf
        >>> tf.maximum([1, 5], 3).tolist()
        [3, 5]
    """
    return elementwise("maximum", kept_nan.maximum, x, y, accepts=REALS, host=np.maximum)


def minimum(x: object, y: object, name: str | None = None) -> Tensor:
    """Return the smaller one of two values.

    Examples:
        >>> import evenfeed as tf
        >>> tf.minimum([1, 5], 3).tolist()
        [1, 3]
    """
    return elementwise("minimum", kept_nan.minimum, x, y, accepts=REALS, host=np.minimum)


def squared_difference(x: object, y: object, name: str | None = None) -> Tensor:
    """Return the square of the difference, `(x - y) ** 2`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.math.squared_difference([1, 5], 3).tolist()
        [4, 4]
    """
    return elementwise("squared_difference", _squared_difference, x, y, host=exact_square)


def xlogy(x: object, y: object, name: str | None = None) -> Tensor:
    """Return `x * log(y)`, and 0 where `x` is 0.

    Examples:
        >>> import evenfeed as tf
        >>> tf.math.xlogy([0.0, 2.0], [0.0, 1.0]).tolist()
        [0.0, 0.0]
    """
    return elementwise("xlogy", _times_function_of(jnp.log), x, y, accepts=FLOATS)


def xlog1py(x: object, y: object, name: str | None = None) -> Tensor:
    """Return `x * log1p(y)`, and 0 where `x` is 0.

    Examples:
        >>> import evenfeed as tf
        >>> tf.math.xlog1py([0.0, 2.0], [-1.0, 0.0]).tolist()
        [0.0, 0.0]
    """
    return elementwise("xlog1py", _times_function_of(jnp.log1p), x, y, accepts=FLOATS)


def xdivy(x: object, y: object, name: str | None = None) -> Tensor:
    """Return `x / y`, and 0 where `x` is 0.

    Examples:
        >>> import evenfeed as tf
        >>> tf.math.xdivy([0.0, 2.0], [0.0, 4.0]).tolist()
        [0.0, 0.5]
    """
    return elementwise("xdivy", _times_function_of(jnp.reciprocal), x, y, accepts=FLOATS)


def polyval(coeffs: object, x: object, name: str | None = None) -> Tensor:
    """Return the value of a polynomial, whose coefficients start with the highest power.

    Examples:
        >>> import evenfeed as tf
        >>> tf.math.polyval([1, 2, 3], 2).tolist()
        11
    """
    numbers = list(cast("Iterable[object]", coeffs))
    return elementwise("polyval", _polynomial, x, *numbers)


def _polynomial(x: Any, *coefficients: Any) -> Any:
    return reduce(lambda value, one: value * x + one, coefficients, jnp.zeros_like(x))


def _true_quotient(x: Any, y: Any) -> Any:
    common = jnp.promote_types(x.dtype, y.dtype)
    if common.kind not in "iu":
        return jnp.true_divide(x, y)
    if common.itemsize < 4:
        return jnp.true_divide(x.astype(dtypes.float32), y.astype(dtypes.float32))
    return jnp.true_divide(wide(x, dtypes.float64), wide(y, dtypes.float64))


def _real_quotient(x: Any, y: Any) -> Any:
    return jnp.true_divide(x, y)


def _quotient_or_zero(x: Any, y: Any) -> Any:
    # The divisor is never 0, so that gradients are finite.
    is_zero = y == 0
    return jnp.where(is_zero, 0, _true_quotient(x, jnp.where(is_zero, 1, y)))


@cache
def _product_or_zero() -> Any:
    def value(x: Any, y: Any) -> Any:
        return jnp.where(y == 0, 0, jnp.multiply(jnp.where(y == 0, 0, x), y))

    def derivative(primals: Any, tangents: Any) -> Any:
        (x, y), (of_x, of_y) = primals, tangents
        return value(x, y), jnp.where(y == 0, 0, of_x * y) + x * of_y

    product = jax.custom_jvp(value)
    product.defjvp(derivative)
    return product


def _squared_difference(x: Any, y: Any) -> Any:
    difference = jnp.subtract(x, y)
    return jnp.conj(difference) * difference


def _times_function_of(function: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    def product(x: Any, y: Any) -> Any:
        is_zero = x == 0
        return jnp.where(is_zero, 0, x * function(jnp.where(is_zero, 1, y)))

    return product


def _floor_quotient(x: Any, y: Any) -> Any:
    return floored_quotient(x, y) if has_floats(x, y) else jnp.floor_divide(x, _divisor(x, y))


def _floor_remainder(x: Any, y: Any) -> Any:
    return jnp.mod(x, _divisor(x, y))


def _truncated_quotient(x: Any, y: Any) -> Any:
    dtype = jnp.promote_types(x.dtype, y.dtype)
    x, y = (one.astype(dtype) for one in jnp.broadcast_arrays(x, _divisor(x, y)))
    found = jax.lax.div(x, y)
    return found if x.dtype.kind in "iu" else jnp.trunc(found)


def _truncated_remainder(x: Any, y: Any) -> Any:
    return jnp.fmod(x, _divisor(x, y))


def _divisor(x: Any, y: Any) -> Any:
    """Return the divisor of x. Raises if it is an integer that is known to be 0, unless x is empty."""
    if y.dtype.kind in "iu" and x.size > 0 and not is_traced(y) and not np.asarray(y).all():
        raise zero_divisor()
    return y


def _power(x: Any, y: Any) -> Any:
    if (
        y.dtype.kind in "i"
        and x.dtype.kind in "iu"
        and not is_traced(y)
        and (np.asarray(y) < 0).any()
    ):
        raise InvalidArgumentError(
            "An integer cannot be raised to a negative power.",
            fix="convert it first: evenfeed.cast(x, evenfeed.float32).",
        )
    return jnp.power(x, y)
