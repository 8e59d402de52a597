"""Products, transposes and diagonals of matrices: `matmul`, `einsum`, `diag` and so on."""

# jax.numpy's type annotations are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

# ruff: noqa: A002, ARG001 - TensorFlow's names; there is no graph to show `name` in

from typing import Any, cast

import numpy as np

from evenfeed.core.errors import FailedPreconditionError, InvalidArgumentError, described
from evenfeed.core.lazy_jax import jnp
from evenfeed.core.ragged import ragged_math
from evenfeed.tensors.axes import known_integer
from evenfeed.tensors.creation import DTypeLike, Tensor
from evenfeed.tensors.operands import COMPUTABLE, apply, in_dtype, rearrange
from evenfeed.tensors.ragged_dispatch import for_ragged


@for_ragged(ragged_math.matmul)
def matmul(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    a: object,
    b: object,
    transpose_a: bool = False,
    transpose_b: bool = False,
    adjoint_a: bool = False,
    adjoint_b: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    output_type: DTypeLike | None = None,
    grad_a: bool = False,
    grad_b: bool = False,
    name: str | None = None,
) -> Tensor:
    """Multiply matrices, or batches of matrices.

    Examples:
        >>> import evenfeed as tf
        >>> tf.matmul([[1, 2], [3, 4]], [[1], [1]]).tolist()
        [[3], [7]]
    """
    _check_turns(a=(transpose_a, adjoint_a), b=(transpose_b, adjoint_b))

    def formula(left: Any, right: Any) -> Any:
        if min(left.ndim, right.ndim) < 2:
            raise InvalidArgumentError(
                f"matmul needs matrices, but got the shapes {tuple(left.shape)} and {tuple(right.shape)}.",
                fix="multiply a matrix and a vector with evenfeed.linalg.matvec.",
            )
        left = _turned(left, transpose_a or adjoint_a, adjoint_a)
        return jnp.matmul(left, _turned(right, transpose_b or adjoint_b, adjoint_b))

    found = apply("matmul", formula, a, b)
    return found if output_type is None else in_dtype(found, output_type)


def matvec(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    a: object,
    b: object,
    transpose_a: bool = False,
    adjoint_a: bool = False,
    a_is_sparse: bool = False,
    b_is_sparse: bool = False,
    name: str | None = None,
) -> Tensor:
    """Multiply a matrix and a vector, or batches of them.

    Examples:
        >>> import evenfeed as tf
        >>> tf.linalg.matvec([[1, 2], [3, 4]], [1, 1]).tolist()
        [3, 7]
    """
    _check_turns(a=(transpose_a, adjoint_a))

    def formula(matrix: Any, vector: Any) -> Any:
        return jnp.matmul(_turned(matrix, transpose_a or adjoint_a, adjoint_a), vector[..., None])[
            ..., 0
        ]

    return apply("matvec", formula, a, b)


def tensordot(a: object, b: object, axes: object, name: str | None = None) -> Tensor:
    """Multiply tensors and sum over axes: the last `axes` of `a` and the first of `b`, or those in two lists.

    Examples:
        >>> import evenfeed as tf
        >>> tf.tensordot([[1, 2], [3, 4]], [1, 1], axes=1).tolist()
        [3, 7]
    """
    numbers = np.asarray(axes)
    pairs: Any = (
        int(numbers)
        if not numbers.ndim
        else [np.atleast_1d(one).tolist() for one in cast("Any", axes)]
    )
    return apply("tensordot", lambda left, right: jnp.tensordot(left, right, pairs), a, b)


def einsum(equation: str, *inputs: object, **kwargs: Any) -> Tensor:
    """Sum products of tensors, as the equation says.

    Examples:
        >>> import evenfeed as tf
        >>> tf.einsum("ij,jk->ik", tf.constant([[1, 2]]), tf.constant([[3], [4]])).tolist()
        [[11]]
    """
    kwargs.pop("name", None)
    kwargs.pop("optimize", None)
    if kwargs:
        raise TypeError(
            described(f"einsum got an unknown argument: {', '.join(kwargs)}.", fix="omit it.")
        )
    return apply("einsum", lambda *tensors: jnp.einsum(equation, *tensors), *inputs)


def cross(a: object, b: object, name: str | None = None) -> Tensor:
    """Return the cross product of vectors of length 3.

    Examples:
        >>> import evenfeed as tf
        >>> tf.linalg.cross([1, 0, 0], [0, 1, 0]).tolist()
        [0, 0, 1]
    """

    def formula(left: Any, right: Any) -> Any:
        if left.shape != right.shape or not left.ndim:
            raise InvalidArgumentError(
                f"cross needs vectors of one shape, but got {tuple(left.shape)} and {tuple(right.shape)}.",
                fix="broadcast one of them first: evenfeed.broadcast_to(x, shape).",
            )
        if left.shape[-1] != 3:
            raise FailedPreconditionError(
                f"cross needs vectors of length 3, but got {left.shape[-1]}.",
                fix="append zeros: evenfeed.pad.",
            )
        return jnp.cross(left, right)

    return apply("cross", formula, a, b)


def trace(x: object, name: str | None = None) -> Tensor:
    """Return the sum of the diagonal of each matrix.

    Examples:
        >>> import evenfeed as tf
        >>> tf.linalg.trace([[1, 2], [3, 4]]).tolist()
        5
    """

    def formula(matrix: Any) -> Any:
        return jnp.trace(matrix, axis1=-2, axis2=-1, dtype=matrix.dtype)

    return apply("trace", formula, x)


def matrix_transpose(
    a: object, name: str | None = "matrix_transpose", conjugate: bool = False
) -> Tensor:
    """Swap rows and columns of each matrix.

    Examples:
        >>> import evenfeed as tf
        >>> tf.linalg.matrix_transpose([[1, 2], [3, 4]]).tolist()
        [[1, 3], [2, 4]]
    """
    return rearrange(
        "matrix_transpose",
        lambda xp, x: xp.conj(xp.swapaxes(x, -1, -2)) if conjugate else xp.swapaxes(x, -1, -2),
        a,
    )


def adjoint(matrix: object, name: str | None = None) -> Tensor:
    """Swap rows and columns of each matrix, and conjugate complex numbers.

    Examples:
        >>> import evenfeed as tf
        >>> tf.linalg.adjoint([[1, 2], [3, 4]]).tolist()
        [[1, 3], [2, 4]]
    """
    return matrix_transpose(matrix, conjugate=True)


def diag(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    diagonal: object,
    name: str | None = "diag",
    k: object = 0,
    num_rows: object = -1,
    num_cols: object = -1,
    padding_value: object = 0,
    align: str = "RIGHT_LEFT",
) -> Tensor:
    """Create matrices with this diagonal, `k` places above the main one.

    Examples:
        >>> import evenfeed as tf
        >>> tf.linalg.diag([1, 2]).tolist()
        [[1, 0], [0, 2]]
    """
    offset, (rows, columns) = (
        known_integer(k, "k"),
        (known_integer(one, "num") for one in (num_rows, num_cols)),
    )

    def formula(values: Any, fill: Any) -> Any:
        length = values.shape[-1]
        square = max(rows, columns) < 0
        height = length + (abs(offset) if square else max(-offset, 0)) if rows < 0 else rows
        width = length + (abs(offset) if square else max(offset, 0)) if columns < 0 else columns
        place = jnp.arange(length)
        empty = jnp.broadcast_to(fill, (*values.shape[:-1], height, width)).astype(values.dtype)
        return empty.at[..., place + max(-offset, 0), place + max(offset, 0)].set(values)

    return apply("diag", formula, diagonal, padding_value, accepts=COMPUTABLE)


def diag_part(
    input: object,
    name: str | None = "diag_part",
    k: object = 0,
    padding_value: object = 0,
    align: str = "RIGHT_LEFT",
) -> Tensor:
    """Return the diagonal of each matrix, `k` places above the main one.

    Examples:
        >>> import evenfeed as tf
        >>> tf.linalg.diag_part([[1, 2], [3, 4]]).tolist()
        [1, 4]
    """
    offset = known_integer(k, "k")
    return rearrange("diag_part", lambda xp, x: xp.diagonal(x, offset, -2, -1), input)


def set_diag(
    input: object,
    diagonal: object,
    name: str | None = "set_diag",
    k: object = 0,
    align: str = "RIGHT_LEFT",
) -> Tensor:
    """Return copies of matrices with another diagonal, `k` places above the main one.

    Examples:
        >>> import evenfeed as tf
        >>> tf.linalg.set_diag([[1, 2], [3, 4]], [9, 9]).tolist()
        [[9, 2], [3, 9]]
    """
    offset = known_integer(k, "k")

    def formula(matrix: Any, values: Any) -> Any:
        place = jnp.arange(values.shape[-1])
        return matrix.at[..., place + max(-offset, 0), place + max(offset, 0)].set(
            values.astype(matrix.dtype)
        )

    return apply("set_diag", formula, input, diagonal, accepts=COMPUTABLE)


def tensor_diag(diagonal: object, name: str | None = None) -> Tensor:
    """Create a tensor with these values on its diagonal; its axes are those of the values, twice.

    Examples:
        >>> import evenfeed as tf
        >>> tf.linalg.tensor_diag([1, 2]).tolist()
        [[1, 0], [0, 2]]
    """

    def formula(values: Any) -> Any:
        return jnp.diag(values.reshape(-1)).reshape(*values.shape, *values.shape)

    return apply("tensor_diag", formula, diagonal)


def tensor_diag_part(input: object, name: str | None = None) -> Tensor:
    """Return the values on the diagonal of a tensor whose axes are the same twice.

    Examples:
        >>> import evenfeed as tf
        >>> tf.linalg.tensor_diag_part([[1, 2], [3, 4]]).tolist()
        [1, 4]
    """

    def formula(values: Any) -> Any:
        half, other = values.shape[: values.ndim // 2], values.shape[values.ndim // 2 :]
        if half != other:
            raise InvalidArgumentError(
                f"tensor_diag_part needs the same axes twice, but got the shape {tuple(values.shape)}.",
                fix="take the diagonal of each matrix: evenfeed.linalg.diag_part.",
            )
        return jnp.diagonal(values.reshape(int(np.prod(half)), -1)).reshape(half)

    return apply("tensor_diag_part", formula, input)


def band_part(
    input: object, num_lower: object, num_upper: object, name: str | None = None
) -> Tensor:
    """Keep the values near the diagonal, and set the others to 0. A negative number keeps all on that side.

    Examples:
        >>> import evenfeed as tf
        >>> tf.linalg.band_part([[1, 2], [3, 4]], -1, 0).tolist()
        [[1, 0], [3, 4]]
    """
    lower, upper = known_integer(num_lower, "num_lower"), known_integer(num_upper, "num_upper")

    def formula(matrix: Any) -> Any:
        rows, columns = jnp.arange(matrix.shape[-2])[:, None], jnp.arange(matrix.shape[-1])
        inside = ((lower < 0) | (rows - columns <= lower)) & (
            (upper < 0) | (columns - rows <= upper)
        )
        return jnp.where(inside, matrix, jnp.zeros_like(matrix))

    return apply("band_part", formula, input, accepts=COMPUTABLE)


def _check_turns(**turns: tuple[bool, bool]) -> None:
    for operand, both in turns.items():
        if all(both):
            raise ValueError(
                described(
                    f"Only one of transpose_{operand} and adjoint_{operand} can be True.",
                    fix=f"pass adjoint_{operand} for complex numbers, else transpose_{operand}.",
                )
            )


def _turned(matrix: Any, transposed: bool, conjugated: bool) -> Any:
    turned = jnp.swapaxes(matrix, -1, -2) if transposed else matrix
    return jnp.conj(turned) if conjugated else turned
