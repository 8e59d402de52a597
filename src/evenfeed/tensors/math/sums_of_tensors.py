"""Functions that add up several tensors: `add_n` and `accumulate_n`."""

# ruff: noqa: ARG001 - TensorFlow's names; there is no graph to show `name` in

from collections.abc import Iterable
from functools import reduce
from typing import Any, cast

from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.lazy_jax import jnp
from evenfeed.core.ragged import ragged_mapping
from evenfeed.tensors.creation import DTypeLike, Tensor
from evenfeed.tensors.operands import apply
from evenfeed.tensors.ragged_dispatch import for_ragged


@for_ragged(ragged_mapping.add_n, several=True)
def add_n(inputs: object, name: str | None = None) -> Tensor:
    """Add up a list of tensors of one shape, or the rows of a tensor.

    Examples:
        >>> import evenfeed as tf
        >>> tf.add_n([[1, 2], [3, 4]]).tolist()
        [4, 6]
    """
    tensors = _tensors_of(inputs)
    if not tensors:
        raise ValueError(
            described("add_n got no tensors.", fix="pass a list of at least one tensor.")
        )
    return apply("add_n", _sum_of_one_shape, *tensors)


def accumulate_n(
    inputs: object,
    shape: object = None,
    tensor_dtype: DTypeLike | None = None,
    name: str | None = None,
) -> Tensor:
    """Add up a list of tensors of one shape, like `add_n`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.math.accumulate_n([[1, 2], [3, 4]]).tolist()
        [4, 6]
    """
    if not isinstance(inputs, (list, tuple)):
        raise ValueError(
            described("accumulate_n needs a list of tensors.", fix="pass a list, or call add_n.")
        )
    return add_n(cast("object", inputs))


def _tensors_of(inputs: object) -> list[object]:
    rows: Any = inputs
    return list(rows) if isinstance(inputs, Iterable) or getattr(inputs, "ndim", 0) else [inputs]


def _sum_of_one_shape(*tensors: Any) -> Any:
    shapes = {tensor.shape for tensor in tensors}
    if len(shapes) > 1:
        raise InvalidArgumentError(
            f"add_n needs tensors of one shape, but got {sorted(shapes)}.",
            fix="broadcast them first, or add them with +.",
        )
    return reduce(jnp.add, tensors)
