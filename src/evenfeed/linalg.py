"""Linear algebra: TensorFlow's `tf.linalg`."""

from typing import TYPE_CHECKING

from evenfeed.core.publish import publish, refusal
from evenfeed.tensors.arrays.filling import eye
from evenfeed.tensors.math.decompositions import (
    cholesky,
    cholesky_solve,
    det,
    eig,
    eigh,
    eigvals,
    eigvalsh,
    expm,
    inv,
    logdet,
    lstsq,
    lu,
    matrix_rank,
    pinv,
    qr,
    slogdet,
    solve,
    svd,
    triangular_solve,
)
from evenfeed.tensors.math.matrices import (
    adjoint,
    band_part,
    cross,
    diag,
    diag_part,
    einsum,
    matmul,
    matrix_transpose,
    matvec,
    set_diag,
    tensor_diag,
    tensor_diag_part,
    tensordot,
    trace,
)
from evenfeed.tensors.math.norms import global_norm, l2_normalize, norm, normalize
from evenfeed.tensors.math.solvers import (
    lu_matrix_inverse,
    lu_reconstruct,
    lu_solve,
    sqrtm,
    tridiagonal_matmul,
    tridiagonal_solve,
)

__all__ = [
    "adjoint",
    "band_part",
    "cholesky",
    "cholesky_solve",
    "cross",
    "det",
    "diag",
    "diag_part",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "einsum",
    "expm",
    "eye",
    "global_norm",
    "inv",
    "l2_normalize",
    "logdet",
    "lstsq",
    "lu",
    "lu_matrix_inverse",
    "lu_reconstruct",
    "lu_solve",
    "matmul",
    "matrix_rank",
    "matrix_transpose",
    "matvec",
    "norm",
    "normalize",
    "pinv",
    "qr",
    "set_diag",
    "slogdet",
    "solve",
    "sqrtm",
    "svd",
    "tensor_diag",
    "tensor_diag_part",
    "tensordot",
    "trace",
    "triangular_solve",
    "tridiagonal_matmul",
    "tridiagonal_solve",
]

publish(__name__, __all__, globals())

if not TYPE_CHECKING:
    __getattr__ = refusal(__name__, __all__, "The README lists what evenfeed provides.")
