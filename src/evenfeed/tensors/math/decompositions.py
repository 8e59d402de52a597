"""Decompositions of matrices, and what follows from them: `inv`, `solve`, `svd`, `eigh` and so on."""

# jax.numpy's type annotations are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false
# pyright: reportUnknownLambdaType=false

# ruff: noqa: A002, ARG001 - TensorFlow's names; there is no graph to show `name` in

from functools import cache, partial
from typing import Any, NamedTuple

from evenfeed.core import dtypes
from evenfeed.core.lazy_jax import jax, jax_linalg, jnp
from evenfeed.tensors.creation import DTypeLike, Tensor
from evenfeed.tensors.operands import FLOATS, apply, in_dtype


class QR(NamedTuple):
    """The result of `qr`."""

    q: Tensor
    r: Tensor


class Lu(NamedTuple):
    """The result of `lu`."""

    lu: Tensor
    p: Tensor


def inv(input: object, adjoint: bool = False, name: str | None = None) -> Tensor:
    """Return the inverse of each matrix.

    Examples:
        >>> import evenfeed as tf
        >>> tf.linalg.inv([[2.0, 0.0], [0.0, 4.0]]).tolist()
        [[0.5, 0.0], [0.0, 0.25]]
    """
    return apply(
        "inv", lambda x: jnp.linalg.inv(_adjoint(x) if adjoint else x), input, accepts=FLOATS
    )


def det(input: object, name: str | None = None) -> Tensor:
    """Return the determinant of each matrix.

    Examples:
        >>> import evenfeed as tf
        >>> f"{tf.linalg.det([[2.0, 1.0], [1.0, 3.0]]):.4f}"
        '5.0000'
    """
    return apply("det", jnp.linalg.det, input, accepts=FLOATS)


def slogdet(input: object, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Return the sign of the determinant of each matrix, and the logarithm of its absolute value.

    Examples:
        >>> import evenfeed as tf
        >>> [f"{x:.4f}" for x in tf.linalg.slogdet([[2.0, 0.0], [0.0, 3.0]])]
        ['1.0000', '1.7918']
    """
    return tuple(apply("slogdet", jnp.linalg.slogdet, input, accepts=FLOATS))


def logdet(matrix: object, name: str | None = None) -> Tensor:
    """Return the logarithm of the determinant of each positive definite matrix.

    Examples:
        >>> import evenfeed as tf
        >>> f"{tf.linalg.logdet([[2.0, 0.0], [0.0, 3.0]]):.4f}"
        '1.7918'
    """
    return apply("logdet", lambda x: jnp.real(jnp.linalg.slogdet(x)[1]), matrix, accepts=FLOATS)


def cholesky(input: object, name: str | None = None) -> Tensor:
    """Return the lower triangular matrix whose product with its adjoint is each matrix; NaN if there is none.

    Examples:
        >>> import evenfeed as tf
        >>> tf.linalg.cholesky([[4.0, 0.0], [0.0, 9.0]]).tolist()
        [[2.0, 0.0], [0.0, 3.0]]
    """
    return apply("cholesky", _lower_factor(), input, accepts=FLOATS)


@cache
def _lower_factor() -> Any:
    """Return a function that reads the lower triangle only, but has the gradient of a symmetric matrix."""
    plain = partial(jnp.linalg.cholesky, symmetrize_input=False)
    factor = jax.custom_jvp(plain)

    def derivative(primals: Any, tangents: Any) -> Any:
        (tangent,) = tangents
        return jax.jvp(plain, primals, ((tangent + _adjoint(tangent)) / 2,))

    factor.defjvp(derivative)
    return factor


def cholesky_solve(chol: object, rhs: object, name: str | None = None) -> Tensor:
    """Solve `a @ x = rhs`, where `chol` is the Cholesky decomposition of `a`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.linalg.cholesky_solve([[2.0, 0.0], [0.0, 1.0]], [[4.0], [3.0]]).tolist()
        [[1.0], [3.0]]
    """

    def formula(lower: Any, right: Any) -> Any:
        half = jax.lax.linalg.triangular_solve(lower, right, left_side=True, lower=True)
        return jax.lax.linalg.triangular_solve(
            lower, half, left_side=True, lower=True, transpose_a=True, conjugate_a=True
        )

    return apply("cholesky_solve", formula, chol, rhs, accepts=FLOATS)


def solve(matrix: object, rhs: object, adjoint: bool = False, name: str | None = None) -> Tensor:
    """Solve `matrix @ x = rhs`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.linalg.solve([[2.0, 0.0], [0.0, 4.0]], [[2.0], [2.0]]).tolist()
        [[1.0], [0.5]]
    """
    return apply(
        "solve",
        lambda a, b: jnp.linalg.solve(_adjoint(a) if adjoint else a, b),
        matrix,
        rhs,
        accepts=FLOATS,
    )


def triangular_solve(
    matrix: object, rhs: object, lower: bool = True, adjoint: bool = False, name: str | None = None
) -> Tensor:
    """Solve `matrix @ x = rhs` for a triangular matrix.

    Examples:
        >>> import evenfeed as tf
        >>> tf.linalg.triangular_solve([[2.0, 0.0], [0.0, 4.0]], [[2.0], [2.0]]).tolist()
        [[1.0], [0.5]]
    """

    def formula(a: Any, b: Any) -> Any:
        return jax.lax.linalg.triangular_solve(
            a, b, left_side=True, lower=lower, transpose_a=adjoint, conjugate_a=adjoint
        )

    return apply("triangular_solve", formula, matrix, rhs, accepts=FLOATS)


def lstsq(
    matrix: object,
    rhs: object,
    l2_regularizer: float = 0.0,
    fast: bool = True,
    name: str | None = None,
) -> Tensor:
    """Find the `x` for which `matrix @ x` is nearest to `rhs`.

    Examples:
        >>> import evenfeed as tf
        >>> f"{tf.linalg.lstsq([[1.0], [1.0]], [[1.0], [3.0]])[0][0]:.4f}"
        '2.0000'
    """

    def formula(a: Any, b: Any) -> Any:
        if not l2_regularizer:
            return jnp.linalg.pinv(a) @ b
        square = _adjoint(a) @ a + l2_regularizer * jnp.eye(a.shape[-1], dtype=a.dtype)
        return jnp.linalg.solve(square, _adjoint(a) @ b)

    return apply("lstsq", formula, matrix, rhs, accepts=FLOATS)


def pinv(
    a: object, rcond: Any = None, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """Return the pseudo-inverse of each matrix.

    Examples:
        >>> import evenfeed as tf
        >>> f"{tf.linalg.pinv([[2.0], [0.0]])[0][0]:.4f}"
        '0.5000'
    """
    return apply("pinv", lambda x: jnp.linalg.pinv(x, rcond), a, accepts=FLOATS)


def matrix_rank(
    a: object, tol: Any = None, validate_args: bool = False, name: str | None = None
) -> Tensor:
    """Return the number of independent rows of each matrix, as int32.

    Examples:
        >>> import evenfeed as tf
        >>> tf.linalg.matrix_rank([[1.0, 2.0], [2.0, 4.0]]).tolist()
        1
    """
    return apply(
        "matrix_rank",
        lambda x: jnp.linalg.matrix_rank(x, tol).astype(dtypes.int32),
        a,
        accepts=FLOATS,
    )


def qr(input: object, full_matrices: bool = False, name: str | None = None) -> QR:
    """Return an orthogonal and an upper triangular matrix whose product is each matrix.

    Examples:
        >>> import evenfeed as tf
        >>> [x.numpy().shape for x in tf.linalg.qr([[1.0], [2.0]])]
        [(2, 1), (1, 1)]
    """
    return QR(
        *apply(
            "qr",
            lambda x: tuple(jnp.linalg.qr(x, "complete" if full_matrices else "reduced")),
            input,
            accepts=FLOATS,
        )
    )


def svd(
    tensor: object, full_matrices: bool = False, compute_uv: bool = True, name: str | None = None
) -> Any:
    """Return the singular values of each matrix, and the matrices `u` and `v`: `u @ diag(s) @ adjoint(v)` is the matrix.

    Examples:
        >>> import evenfeed as tf
        >>> tf.linalg.svd([[3.0, 0.0], [0.0, 4.0]], compute_uv=False).tolist()
        [4.0, 3.0]
    """

    def formula(matrix: Any) -> Any:
        if not compute_uv:
            return jnp.linalg.svd(matrix, compute_uv=False)
        left, values, right = jnp.linalg.svd(matrix, full_matrices=full_matrices)
        return values, left, _adjoint(right)

    return apply("svd", formula, tensor, accepts=FLOATS)


def eigh(tensor: object, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Return the eigenvalues and eigenvectors of each self-adjoint matrix.

    Examples:
        >>> import evenfeed as tf
        >>> [f"{x:.1f}" for x in tf.linalg.eigh([[2.0, 0.0], [0.0, 1.0]])[0]]
        ['1.0', '2.0']
    """
    return tuple(
        apply(
            "eigh",
            lambda x: tuple(jnp.linalg.eigh(x, symmetrize_input=False)),
            tensor,
            accepts=FLOATS,
        )
    )


def eigvalsh(tensor: object, name: str | None = None) -> Tensor:
    """Return the eigenvalues of each self-adjoint matrix.

    Examples:
        >>> import evenfeed as tf
        >>> [f"{x:.1f}" for x in tf.linalg.eigvalsh([[2.0, 0.0], [0.0, 1.0]])]
        ['1.0', '2.0']
    """
    return apply(
        "eigvalsh", lambda x: jnp.linalg.eigvalsh(x, symmetrize_input=False), tensor, accepts=FLOATS
    )


def eig(tensor: object, name: str | None = None) -> tuple[Tensor, Tensor]:
    """Return the eigenvalues and eigenvectors of each matrix, as complex numbers.

    Examples:
        >>> import evenfeed as tf
        >>> [x.numpy().shape for x in tf.linalg.eig(tf.eye(2))]
        [(2,), (2, 2)]
    """
    return tuple(apply("eig", lambda x: tuple(jnp.linalg.eig(x)), tensor, accepts=FLOATS))


def eigvals(tensor: object, name: str | None = None) -> Tensor:
    """Return the eigenvalues of each matrix, as complex numbers.

    Examples:
        >>> import evenfeed as tf
        >>> tf.linalg.eigvals(tf.eye(2)).tolist()
        [(1+0j), (1+0j)]
    """
    return apply("eigvals", jnp.linalg.eigvals, tensor, accepts=FLOATS)


def expm(input: object, name: str | None = None) -> Tensor:
    """Return the matrix exponential of each matrix.

    Examples:
        >>> import evenfeed as tf
        >>> tf.linalg.expm([[0.0, 0.0], [0.0, 0.0]]).tolist()
        [[1.0, 0.0], [0.0, 1.0]]
    """
    return apply("expm", jax_linalg.expm, input, accepts=FLOATS)


def lu(input: object, output_idx_type: DTypeLike = dtypes.int32, name: str | None = None) -> Lu:
    """Return the LU decomposition of each matrix, and the permutation of its rows.

    Examples:
        >>> import evenfeed as tf
        >>> [x.tolist() for x in tf.linalg.lu([[0.0, 2.0], [4.0, 6.0]])]
        [[[4.0, 6.0], [0.0, 2.0]], [1, 0]]
    """

    def formula(matrix: Any) -> Any:
        found, _, order = jax.lax.linalg.lu(matrix)
        return found, in_dtype(order, output_idx_type)

    return Lu(*apply("lu", formula, input, accepts=FLOATS))


def _adjoint(matrix: Any) -> Any:
    return jnp.conj(jnp.swapaxes(matrix, -1, -2))
