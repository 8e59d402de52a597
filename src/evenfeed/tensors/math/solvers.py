"""Equations of special matrices, and roots of matrices: `lu_solve`, `tridiagonal_solve`, `sqrtm` and so on."""

# ruff: noqa: ARG001 - TensorFlow's names; there is no graph to show `name` in

from typing import Any, Final

from evenfeed.core.errors import described
from evenfeed.core.lazy_jax import jax, jax_linalg, jnp
from evenfeed.tensors.arrays.picking import indices_of
from evenfeed.tensors.creation import Tensor, convert_to_tensor
from evenfeed.tensors.operands import FLOATS, apply

_FORMATS: Final = ("compact", "matrix", "sequence")


def lu_solve(
    lower_upper: object,
    perm: object,
    rhs: object,
    validate_args: bool = False,
    name: str | None = None,
) -> Tensor:
    """Solve `x @ y = rhs`, where `lu(x)` returned the first two arguments.

    Examples:
        >>> import evenfeed as tf
        >>> tf.linalg.lu_solve(*tf.linalg.lu([[2.0, 0.0], [0.0, 4.0]]), [[2.0], [2.0]]).tolist()
        [[1.0], [0.5]]
    """
    order = indices_of(perm)

    def formula(both: Any, right: Any) -> Any:
        return _lu_solved(both, order, right)

    return apply("lu_solve", formula, lower_upper, rhs, accepts=FLOATS)


def lu_matrix_inverse(
    lower_upper: object, perm: object, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """Return the inverse of the matrix for which `lu` returned these arguments.

    Examples:
        >>> import evenfeed as tf
        >>> tf.linalg.lu_matrix_inverse(*tf.linalg.lu([[2.0, 0.0], [0.0, 4.0]])).tolist()
        [[0.5, 0.0], [0.0, 0.25]]
    """
    order = indices_of(perm)

    def formula(both: Any) -> Any:
        unit = jnp.broadcast_to(jnp.eye(both.shape[-1], dtype=both.dtype), both.shape)
        return _lu_solved(both, order, unit)

    return apply("lu_matrix_inverse", formula, lower_upper, accepts=FLOATS)


def lu_reconstruct(
    lower_upper: object, perm: object, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """Return the matrix for which `lu` returned these arguments.

    Examples:
        >>> import evenfeed as tf
        >>> tf.linalg.lu_reconstruct(*tf.linalg.lu([[0.0, 2.0], [4.0, 6.0]])).tolist()
        [[0.0, 2.0], [4.0, 6.0]]
    """
    order = indices_of(perm)

    def formula(both: Any) -> Any:
        unit = jnp.eye(both.shape[-1], dtype=both.dtype)
        found = (jnp.tril(both, -1) + unit) @ jnp.triu(both)
        return jnp.take_along_axis(found, jnp.argsort(order, axis=-1)[..., None], axis=-2)

    return apply("lu_reconstruct", formula, lower_upper, accepts=FLOATS)


def sqrtm(input: object, name: str | None = None) -> Tensor:  # noqa: A002 - TensorFlow's name
    """Return the square root of each square matrix.

    Examples:
        >>> import evenfeed as tf
        >>> tf.linalg.sqrtm([[4.0, 0.0], [0.0, 9.0]]).tolist()
        [[2.0, 0.0], [0.0, 3.0]]
    """

    def formula(matrices: Any) -> Any:
        flat = matrices.reshape(-1, *matrices.shape[-2:])
        found = jnp.stack([jax_linalg.sqrtm(matrix) for matrix in flat]).reshape(matrices.shape)
        return found if matrices.dtype.kind == "c" else found.real.astype(matrices.dtype)

    return apply("sqrtm", formula, input, accepts=FLOATS)


def tridiagonal_matmul(
    diagonals: Any, rhs: object, diagonals_format: str = "compact", name: str | None = None
) -> Tensor:
    """Multiply matrices that have three diagonals with others.

    Args:
        diagonals: The upper, the middle and the lower diagonal: see `tridiagonal_solve`.
        rhs: The matrices to multiply with.
        diagonals_format: "compact", "sequence" or "matrix".
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> tf.linalg.tridiagonal_matmul([[1.0, 0.0], [2.0, 2.0], [0.0, 1.0]], [[1.0], [1.0]]).tolist()
        [[3.0], [3.0]]
    """

    def formula(upper: Any, middle: Any, lower: Any, right: Any) -> Any:
        found = middle[..., None] * right
        found = found.at[..., :-1, :].add(upper[..., :-1, None] * right[..., 1:, :])
        return found.at[..., 1:, :].add(lower[..., 1:, None] * right[..., :-1, :])

    return apply("tridiagonal_matmul", formula, *_diagonals(diagonals, diagonals_format), rhs)


def tridiagonal_solve(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    diagonals: Any,
    rhs: Any,
    diagonals_format: str = "compact",
    transpose_rhs: bool = False,
    conjugate_rhs: bool = False,
    name: str | None = None,
    partial_pivoting: bool = True,
    perturb_singular: bool = False,
) -> Tensor:
    """Solve equations whose matrices have three diagonals.

    Args:
        diagonals: The upper, the middle and the lower diagonal, each as long as the matrix: "compact" has them along
            the axis before the last, "sequence" is a tuple of them, and "matrix" is the whole matrix.
        rhs: The right sides: vectors or matrices.
        diagonals_format: "compact", "sequence" or "matrix".
        transpose_rhs: Whether to transpose the right sides first.
        conjugate_rhs: Whether to conjugate them first.
        name: Accepted for compatibility.
        partial_pivoting: Accepted for compatibility.
        perturb_singular: Not supported.

    Examples:
        >>> import evenfeed as tf
        >>> tf.linalg.tridiagonal_solve([[1.0, 0.0], [2.0, 2.0], [0.0, 1.0]], [3.0, 3.0]).tolist()
        [1.0, 1.0]
    """
    if perturb_singular:
        raise NotImplementedError(
            described("perturb_singular is not supported.", fix="leave it out.")
        )
    upper, middle, lower = _diagonals(diagonals, diagonals_format)

    def formula(above: Any, main: Any, below: Any, right: Any) -> Any:
        is_vector = right.ndim < main.ndim + 1
        right = right[..., None] if is_vector else right
        right = jnp.swapaxes(right, -1, -2) if transpose_rhs and not is_vector else right
        right = jnp.conj(right) if conjugate_rhs else right
        found = jax.lax.linalg.tridiagonal_solve(
            below.at[..., 0].set(0), main, above.at[..., -1].set(0), right
        )
        return found[..., 0] if is_vector else found

    return apply("tridiagonal_solve", formula, upper, middle, lower, rhs, accepts=FLOATS)


def _lu_solved(both: Any, order: Any, right: Any) -> Any:
    rows = jnp.take_along_axis(right, order[..., None], axis=-2)
    half = jax.lax.linalg.triangular_solve(
        both, rows, left_side=True, lower=True, unit_diagonal=True
    )
    return jax.lax.linalg.triangular_solve(both, half, left_side=True, lower=False)


def _diagonals(diagonals: Any, diagonals_format: str) -> list[Any]:
    """Return the upper, the middle and the lower diagonal, all as long as the matrix."""
    if diagonals_format not in _FORMATS:
        raise ValueError(
            described(
                f"diagonals_format must be one of {', '.join(_FORMATS)}, but got {diagonals_format!r}.",
                fix='pass "compact".',
            )
        )
    if diagonals_format == "sequence":
        upper, middle, lower = (convert_to_tensor(each) for each in diagonals)
        length = middle.shape[-1]
        pads = [(0, 0)] * (middle.ndim - 1)
        above = upper if upper.shape[-1] == length else jnp.pad(upper, [*pads, (0, 1)])
        below = lower if lower.shape[-1] == length else jnp.pad(lower, [*pads, (1, 0)])
        return [above, middle, below]
    whole: Any = convert_to_tensor(diagonals)
    if diagonals_format == "compact":
        return [whole[..., 0, :], whole[..., 1, :], whole[..., 2, :]]
    upper, middle, lower = (
        jnp.diagonal(whole, offset, axis1=-2, axis2=-1) for offset in (1, 0, -1)
    )
    pads = [(0, 0)] * (middle.ndim - 1)
    return [jnp.pad(upper, [*pads, (0, 1)]), middle, jnp.pad(lower, [*pads, (1, 0)])]
