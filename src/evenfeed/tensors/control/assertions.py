"""Checks that raise: TensorFlow's `tf.debugging`. A check of values runs where the values are known.

While a function is traced they are not: the function of a `map` with such a check runs per element, and a compiled
function runs as plain Python. Checks of shapes and dtypes cost nothing.
"""

# ruff: noqa: ARG001 - TensorFlow's arguments; `summarize` and `name` change nothing

from collections.abc import Callable
from typing import Any

import numpy as np

from evenfeed.core.conversion import shortened
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.tensors.creation import Tensor, host_or_device
from evenfeed.tensors.operands import converted_together


def Assert(  # noqa: N802 - TensorFlow's name
    condition: object, data: object, summarize: int | None = None, name: str | None = None
) -> None:
    """Raise InvalidArgumentError with the data unless the condition is True.

    Examples:
        >>> import evenfeed as tf
        >>> tf.Assert(tf.constant(1) > 0, ["x is not positive"])
    """
    if not np.all(_known(condition)):
        raise InvalidArgumentError(f"A condition is False: {shortened(data)}")


def _comparing(
    relation: str, holds: Callable[[Any, Any], Any], x: object, y: object, message: str | None
) -> None:
    left, right = (np.asarray(one) for one in converted_together([x, y]))
    try:
        found = holds(left, right)
    except ValueError as error:
        raise InvalidArgumentError(
            f"The shapes {left.shape} and {right.shape} do not broadcast."
        ) from error
    if not np.all(found):
        _fail(
            f"x {relation} y is not true for all values: x is {_shown(left)}, y is {_shown(right)}.",
            message,
        )


def assert_equal(
    x: object,
    y: object,
    message: str | None = None,
    summarize: int | None = None,
    name: str | None = None,
) -> None:
    """Raise InvalidArgumentError unless `x == y` for all values.

    Examples:
        >>> import evenfeed as tf
        >>> tf.debugging.assert_equal([1, 2], [1, 2])
    """
    _comparing("==", np.equal, x, y, message)


def assert_less(
    x: object,
    y: object,
    message: str | None = None,
    summarize: int | None = None,
    name: str | None = None,
) -> None:
    """Raise InvalidArgumentError unless `x < y` for all values.

    Examples:
        >>> import evenfeed as tf
        >>> tf.debugging.assert_less(1, 2)
    """
    _comparing("<", np.less, x, y, message)


def assert_less_equal(
    x: object,
    y: object,
    message: str | None = None,
    summarize: int | None = None,
    name: str | None = None,
) -> None:
    """Raise InvalidArgumentError unless `x <= y` for all values.

    Examples:
        >>> import evenfeed as tf
        >>> tf.debugging.assert_less_equal(1, 1)
    """
    _comparing("<=", np.less_equal, x, y, message)


def assert_greater(
    x: object,
    y: object,
    message: str | None = None,
    summarize: int | None = None,
    name: str | None = None,
) -> None:
    """Raise InvalidArgumentError unless `x > y` for all values.

    Examples:
        >>> import evenfeed as tf
        >>> tf.debugging.assert_greater(2, 1)
    """
    _comparing(">", np.greater, x, y, message)


def assert_greater_equal(
    x: object,
    y: object,
    message: str | None = None,
    summarize: int | None = None,
    name: str | None = None,
) -> None:
    """Raise InvalidArgumentError unless `x >= y` for all values.

    Examples:
        >>> import evenfeed as tf
        >>> tf.debugging.assert_greater_equal(1, 1)
    """
    _comparing(">=", np.greater_equal, x, y, message)


def assert_none_equal(
    x: object,
    y: object,
    summarize: int | None = None,
    message: str | None = None,
    name: str | None = None,
) -> None:
    """Raise InvalidArgumentError unless `x != y` for all values.

    Examples:
        >>> import evenfeed as tf
        >>> tf.debugging.assert_none_equal(1, 2)
    """
    _comparing("!=", np.not_equal, x, y, message)


def assert_positive(
    x: object, message: str | None = None, summarize: int | None = None, name: str | None = None
) -> None:
    """Raise InvalidArgumentError unless all values are above 0.

    Examples:
        >>> import evenfeed as tf
        >>> tf.debugging.assert_positive([1])
    """
    _comparing(">", np.greater, x, 0, message)


def assert_negative(
    x: object, message: str | None = None, summarize: int | None = None, name: str | None = None
) -> None:
    """Raise InvalidArgumentError unless all values are below 0.

    Examples:
        >>> import evenfeed as tf
        >>> tf.debugging.assert_negative([-1])
    """
    _comparing("<", np.less, x, 0, message)


def assert_non_negative(
    x: object, message: str | None = None, summarize: int | None = None, name: str | None = None
) -> None:
    """Raise InvalidArgumentError unless all values are at least 0.

    Examples:
        >>> import evenfeed as tf
        >>> tf.debugging.assert_non_negative([0])
    """
    _comparing(">=", np.greater_equal, x, 0, message)


def assert_non_positive(
    x: object, message: str | None = None, summarize: int | None = None, name: str | None = None
) -> None:
    """Raise InvalidArgumentError unless all values are at most 0.

    Examples:
        >>> import evenfeed as tf
        >>> tf.debugging.assert_non_positive([0])
    """
    _comparing("<=", np.less_equal, x, 0, message)


def assert_near(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    x: object,
    y: object,
    rtol: float | None = None,
    atol: float | None = None,
    message: str | None = None,
    summarize: int | None = None,
    name: str | None = None,
) -> None:
    """Raise InvalidArgumentError unless `abs(x - y) <= atol + rtol * abs(y)` for all values.

    Examples:
        >>> import evenfeed as tf
        >>> tf.debugging.assert_near(1.0, 1.0000001)
    """
    eps = 10 * np.finfo(np.asarray(converted_together([x, y])[0]).dtype).eps
    relative, absolute = (eps if given is None else given for given in (rtol, atol))

    def near(left: Any, right: Any) -> Any:
        return np.abs(left - right) <= absolute + relative * np.abs(right)

    _comparing("≈", near, x, y, message)


def assert_all_finite(x: object, message: str, name: str | None = None) -> Tensor:
    """Raise InvalidArgumentError if a value is NaN or infinite, else return the tensor.

    Examples:
        >>> import evenfeed as tf
        >>> tf.debugging.assert_all_finite([1.0], "the loss").tolist()
        [1.0]
    """
    tensor = host_or_device(x)
    values = np.asarray(tensor)
    if not np.isfinite(values).all():
        _fail(f"A value is not finite: {_shown(values)}.", message)
    return tensor


def check_numerics(tensor: object, message: str, name: str | None = None) -> Tensor:
    """Raise InvalidArgumentError if a value is NaN or infinite, else return the tensor.

    Examples:
        >>> import evenfeed as tf
        >>> tf.debugging.check_numerics([1.0], "the loss").tolist()
        [1.0]
    """
    return assert_all_finite(tensor, message)


def _known(value: object) -> Any:
    return np.asarray(host_or_device(value))


def _shown(values: Any) -> str:
    return shortened(values.tolist())


def _fail(what: str, message: str | None) -> None:
    raise InvalidArgumentError(f"{message} {what}" if message else what)
