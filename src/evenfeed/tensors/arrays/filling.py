"""Functions that create tensors from lengths: `fill`, `zeros_like`, `eye`, `linspace` and so on."""

# jax.numpy's type annotations are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

# ruff: noqa: A002, ARG001 - TensorFlow's names; there is no graph to show `name` in

from typing import Any

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import cannot_hold
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.core.tensor_types import host_tensor
from evenfeed.tensors.axes import axis_of, known_integer
from evenfeed.tensors.creation import DTypeLike, Tensor, host_or_device, static_shape
from evenfeed.tensors.device_arrays import asked_dtype, filled, remembering, stays_on_host
from evenfeed.tensors.operands import (
    COMPUTABLE,
    INTEGERS,
    REALS,
    apply,
    check_dtypes,
    in_dtype,
    is_text,
    rearrange,
    shaped_by,
)
from evenfeed.tensors.ragged_dispatch import for_flat_values


def fill(dims: object, value: object, name: str | None = None) -> Tensor:
    """Create a tensor of one value.

    Examples:
        >>> import evenfeed as tf
        >>> tf.fill([2, 2], 7).tolist()
        [[7, 7], [7, 7]]
    """
    lengths = static_shape(dims)
    return rearrange("fill", lambda xp, one: xp.full(lengths, one, one.dtype), value)


@for_flat_values
def zeros_like(input: object, dtype: DTypeLike | None = None, name: str | None = None) -> Tensor:
    """Create zeros in the shape of another tensor; for text, empty texts.

    Examples:
        >>> import evenfeed as tf
        >>> tf.zeros_like([1, 2]).tolist()
        [0, 0]
    """
    return _filled_like("zeros_like", 0, input, dtype)


@for_flat_values
def ones_like(input: object, dtype: DTypeLike | None = None, name: str | None = None) -> Tensor:
    """Create ones in the shape of another tensor.

    Examples:
        >>> import evenfeed as tf
        >>> tf.ones_like([1, 2]).tolist()
        [1, 1]
    """
    return _filled_like("ones_like", 1, input, dtype)


def eye(
    num_rows: object,
    num_columns: object = None,
    batch_shape: object = None,
    dtype: DTypeLike = dtypes.float32,
    name: str | None = None,
) -> Tensor:
    """Create a matrix with ones on the diagonal, or a batch of them.

    Examples:
        >>> import evenfeed as tf
        >>> tf.eye(2, 3).tolist()
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
    """
    rows = known_integer(num_rows, "num_rows")
    columns = rows if num_columns is None else known_integer(num_columns, "num_columns")
    batch = () if batch_shape is None else static_shape(batch_shape)
    held = asked_dtype(dtype)
    matrix = jnp.broadcast_to(jnp.eye(rows, columns, dtype=held), (*batch, rows, columns))
    return remembering(matrix, dtypes.as_dtype(dtype))


def linspace(
    start: object, stop: object, num: object, axis: object = 0, name: str | None = None
) -> Tensor:
    """Create `num` numbers at equal distances, from `start` to `stop`, both included.

    Examples:
        >>> import evenfeed as tf
        >>> tf.linspace(0.0, 1.0, 5).tolist()
        [0.0, 0.25, 0.5, 0.75, 1.0]
    """
    count = known_integer(num, "num")
    if count < 0:
        raise InvalidArgumentError(
            f"num must be at least 0, but got {count}.", fix="pass the number of values."
        )

    def formula(first: Any, last: Any) -> Any:
        place = axis_of(first.ndim + 1, axis)
        dtype = first.dtype if jnp.issubdtype(first.dtype, jnp.floating) else jnp.float64
        kept = jax.dtypes.canonicalize_dtype(dtype)
        return jnp.linspace(first, last, count, axis=place, dtype=kept)

    return apply("linspace", formula, start, stop, accepts=REALS)


def sequence_mask(
    lengths: object, maxlen: object = None, dtype: DTypeLike = dtypes.bool, name: str | None = None
) -> Tensor:
    """Return rows that are True up to each length. Without `maxlen`, they are as long as the longest.

    Examples:
        >>> import evenfeed as tf
        >>> tf.sequence_mask([1, 3]).tolist()
        [[True, False, False], [True, True, True]]
    """
    tensor = host_or_device(lengths)
    check_dtypes("sequence_mask", [tensor], INTEGERS)
    longest = (
        int(np.asarray(tensor).max(initial=0))
        if maxlen is None
        else known_integer(maxlen, "maxlen")
    )

    def formula(counts: Any) -> Any:
        return in_dtype(jnp.arange(longest) < counts[..., None], dtype)

    def host(counts: Any) -> Any:
        return (np.arange(longest) < counts[..., None]).astype(dtypes.as_dtype(dtype))

    return apply("sequence_mask", formula, tensor, accepts=INTEGERS, host=host)


def _filled_like(function: str, number: int, value: object, dtype: DTypeLike | None) -> Any:
    tensor = host_or_device(value)
    asked = tensor.dtype if dtype is None else dtypes.as_dtype(dtype)
    if asked == dtypes.string:
        if number:
            raise cannot_hold(number, asked)
        return host_tensor(np.full(tensor.shape, b"", asked))
    if dtype is not None:
        asked_dtype(dtype)  # warns
    numbers = np.zeros(tensor.shape) if is_text(tensor) else tensor
    if isinstance(numbers, np.ndarray) and stays_on_host():
        check_dtypes(function, [numbers], COMPUTABLE)
        return shaped_by(filled(number, numbers.shape, asked), value)
    found = apply(
        function, lambda x: in_dtype(jnp.full(x.shape, number), asked), numbers, accepts=COMPUTABLE
    )
    return shaped_by(found, value)
