"""Functions that make the initial value of a variable: TensorFlow's `zeros_initializer` and its siblings."""

from abc import ABC, abstractmethod
from typing import Any, Final, Self, cast, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import shortened
from evenfeed.core.errors import described
from evenfeed.tensors.creation import DTypeLike, constant, ones, zeros
from evenfeed.tensors.randomness import normal, uniform
from evenfeed.tensors.stateless_random import stateless_normal, stateless_uniform

_PARTS: Final = ("partition_shape", "partition_offset")


class Initializer(ABC):
    """Makes the initial value of a variable: call it with a shape and a dtype."""

    @abstractmethod
    def get_config(self) -> dict[str, Any]:
        """Return the arguments that make the same initializer."""

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> Self:
        """Make an initializer from what `get_config` returned."""
        return cls(**{name: value for name, value in config.items() if name != "dtype"})


def _whole(given: dict[str, Any], shape: Any) -> Any:
    """Return the shape of the part to make: TensorFlow passes it as a keyword."""
    for name in given:
        if name not in _PARTS:
            raise TypeError(
                described(
                    f"An initializer has no argument {name!r}.",
                    fix="pass partition_shape or partition_offset, or nothing.",
                )
            )
    part = given.get("partition_shape")
    return shape if part is None else part


def _needs(what: str, dtype: DTypeLike, kinds: str) -> dtypes.DType:
    asked = dtypes.as_dtype(dtype)
    if asked.kind not in kinds and asked != dtypes.bfloat16:
        raise ValueError(
            described(
                f"The dtype must be {what}, but got {dtypes.name_of(asked)}.",
                fix="pass dtype=evenfeed.float32, for example.",
            )
        )
    return asked


@final
class zeros_initializer(Initializer):  # noqa: N801 - TensorFlow's name
    """Makes zeros.

    Examples:
        >>> import evenfeed as tf
        >>> tf.Variable(tf.zeros_initializer()([2])).numpy().tolist()
        [0.0, 0.0]
    """

    def __call__(self, shape: Any, dtype: DTypeLike = dtypes.float32, **kwargs: Any) -> Any:
        """Return the initial value."""
        return zeros(_whole(kwargs, shape), _needs("a number or bool", dtype, "iufcb"))

    def get_config(self) -> dict[str, Any]:
        return {}


@final
class ones_initializer(Initializer):  # noqa: N801 - TensorFlow's name
    """Makes ones.

    Examples:
        >>> import evenfeed as tf
        >>> tf.ones_initializer()([2], tf.int32).tolist()
        [1, 1]
    """

    def __call__(self, shape: Any, dtype: DTypeLike = dtypes.float32, **kwargs: Any) -> Any:
        """Return the initial value."""
        return ones(_whole(kwargs, shape), _needs("a number or bool", dtype, "iufcb"))

    def get_config(self) -> dict[str, Any]:
        return {}


@final
class constant_initializer(Initializer):  # noqa: N801 - TensorFlow's name
    """Makes a tensor of one value, or of a list of values in their order.

    Args:
        value: A Python number, a list of them, or a NumPy array.
        support_partition: Whether to accept `partition_shape`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.constant_initializer([1, 2, 3, 4])([2, 2]).tolist()
        [[1, 2], [3, 4]]
    """

    def __init__(self, value: Any = 0, support_partition: bool = False) -> None:
        if not (np.isscalar(value) or isinstance(value, (list, tuple, np.ndarray))):
            raise TypeError(
                described(
                    f"value must be a number, a list or an array, but got {shortened(value)}.",
                    fix="pass the values of the tensor.",
                )
            )
        self.value: Any = cast("Any", value)
        self.support_partition = support_partition

    def __call__(self, shape: Any, dtype: DTypeLike | None = None, **kwargs: Any) -> Any:
        """Return the initial value."""
        whole = _whole(kwargs, shape)
        if whole is not shape and not self.support_partition:
            raise ValueError(
                described(
                    "This initializer makes whole tensors only.",
                    fix="pass support_partition=True to constant_initializer.",
                )
            )
        return constant(self.value, dtype, shape=whole)

    def get_config(self) -> dict[str, Any]:
        return {"value": self.value}


@final
class random_uniform_initializer(Initializer):  # noqa: N801 - TensorFlow's name
    """Draws numbers between two bounds, uniformly. With a seed they are TensorFlow's, and the same at each call.

    Args:
        minval: The lower bound.
        maxval: The upper bound, exclusive.
        seed: The seed; None for other numbers at each call.

    Examples:
        >>> import evenfeed as tf
        >>> tf.random_uniform_initializer(0, 9, seed=3)([3], tf.int32).tolist()
        [0, 2, 7]
    """

    def __init__(self, minval: Any = -0.05, maxval: Any = 0.05, seed: int | None = None) -> None:
        self.minval = minval
        self.maxval = maxval
        self.seed = seed

    def __call__(self, shape: Any, dtype: DTypeLike = dtypes.float32, **kwargs: Any) -> Any:
        """Return the initial value."""
        whole, asked = _whole(kwargs, shape), _needs("a real number", dtype, "iuf")
        if self.seed is None:
            return uniform(whole, self.minval, self.maxval, asked)
        return stateless_uniform(whole, [self.seed, 0], self.minval, self.maxval, asked)

    def get_config(self) -> dict[str, Any]:
        return {"minval": self.minval, "maxval": self.maxval, "seed": self.seed}


@final
class random_normal_initializer(Initializer):  # noqa: N801 - TensorFlow's name
    """Draws from a normal distribution. With a seed the numbers are TensorFlow's, and the same at each call.

    Args:
        mean: The mean.
        stddev: The standard deviation.
        seed: The seed; None for other numbers at each call.

    Examples:
        >>> import evenfeed as tf
        >>> start = tf.random_normal_initializer(seed=3)
        >>> (start([4]) == start([4])).all().item()
        True
    """

    def __init__(self, mean: Any = 0.0, stddev: Any = 0.05, seed: int | None = None) -> None:
        self.mean = mean
        self.stddev = stddev
        self.seed = seed

    def __call__(self, shape: Any, dtype: DTypeLike = dtypes.float32, **kwargs: Any) -> Any:
        """Return the initial value."""
        whole, asked = _whole(kwargs, shape), _needs("a real float", dtype, "f")
        if self.seed is None:
            return normal(whole, self.mean, self.stddev, asked)
        return stateless_normal(whole, [self.seed, 0], self.mean, self.stddev, asked)

    def get_config(self) -> dict[str, Any]:
        return {"mean": self.mean, "stddev": self.stddev, "seed": self.seed}
