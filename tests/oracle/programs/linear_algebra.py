"""Matrices, norms and clipping: values, dtypes and errors, on tensors and in a map."""

# pyright: basic

import numpy as np

A = np.array([[4.0, 1.0], [2.0, 3.0]])
B = np.array([[1.0, -2.0], [0.5, 3.0]])
SYMMETRIC = np.array([[4.0, 1.0], [1.0, 3.0]])
BATCH = np.stack([A, B, SYMMETRIC])


def _each(ask, calls):
    return {label: ask(*call) for label, call in calls.items()}


def products(tf, ask):
    linalg = tf.linalg
    return _each(
        ask,
        {
            "matmul": (tf.matmul, A, B),
            "matmul ints": (tf.matmul, [[1, 2]], [[3], [4]]),
            "matmul batch": (tf.matmul, BATCH, A),
            "matmul transposed": (lambda: tf.matmul(A, B, transpose_a=True, transpose_b=True),),
            "matmul adjoint": (lambda: tf.matmul(A * 1j, B * (1 + 1j), adjoint_a=True),),
            "matmul vectors": (tf.matmul, A[0], B),
            "matmul unlike": (tf.matmul, A, np.ones((3, 2))),
            "matmul bools": (tf.matmul, [[True]], [[True]]),
            "matvec": (linalg.matvec, A, B[0]),
            "matvec transposed": (lambda: linalg.matvec(A, B[0], transpose_a=True),),
            "tensordot 1": (tf.tensordot, A, B, 1),
            "tensordot 0": (tf.tensordot, A[0], B[0], 0),
            "tensordot axes": (tf.tensordot, A, B, [[1], [1]]),
            "tensordot both": (tf.tensordot, A, B, [[0, 1], [1, 0]]),
            "einsum": (lambda: tf.einsum("ij,kj->ik", tf.constant(A), tf.constant(B)),),
            "einsum dots": (lambda: tf.einsum("...ij->...ji", tf.constant(BATCH)),),
            "einsum unlike": (lambda: tf.einsum("ij,jk->ik", tf.constant(A), tf.ones([3, 1])),),
            "cross": (linalg.cross, [1.0, 2.0, 3.0], [4.0, 5.0, 6.0]),
            "trace": (linalg.trace, BATCH),
            "matrix_transpose": (linalg.matrix_transpose, BATCH),
            "adjoint": (linalg.adjoint, A * 1j),
        },
    )


def diagonals(tf, ask):
    linalg = tf.linalg
    return _each(
        ask,
        {
            "diag": (linalg.diag, [1, 2]),
            "diag above": (lambda: linalg.diag([1, 2], k=1),),
            "diag below wide": (lambda: linalg.diag([1, 2], k=-1, num_cols=4, padding_value=9),),
            "diag batch": (linalg.diag, A),
            "diag_part": (linalg.diag_part, BATCH),
            "diag_part above": (lambda: linalg.diag_part(A, k=1),),
            "set_diag": (linalg.set_diag, A, np.array([7.0, 8.0])),
            "set_diag below": (lambda: linalg.set_diag(A, np.array([7.0]), k=-1),),
            "tensor_diag": (linalg.tensor_diag, [1, 2]),
            "tensor_diag matrix": (linalg.tensor_diag, A),
            "tensor_diag_part": (linalg.tensor_diag_part, A),
            "band_part lower": (linalg.band_part, np.ones((3, 3)), -1, 0),
            "band_part": (linalg.band_part, np.ones((3, 4)), 1, 1),
        },
    )


def decompositions(tf, ask):
    linalg = tf.linalg
    return _each(
        ask,
        {
            "inv": (linalg.inv, BATCH),
            "inv adjoint": (linalg.inv, A, True),
            "inv ints": (linalg.inv, [[1, 0], [0, 1]]),
            "det": (linalg.det, BATCH),
            "slogdet": (lambda: tuple(linalg.slogdet(B)),),
            "logdet": (linalg.logdet, SYMMETRIC),
            "cholesky": (linalg.cholesky, SYMMETRIC),
            "cholesky_solve": (linalg.cholesky_solve, np.linalg.cholesky(SYMMETRIC), B),
            "solve": (linalg.solve, A, B),
            "solve adjoint": (linalg.solve, A, B, True),
            "solve unlike": (linalg.solve, A, np.ones((3, 1))),
            "triangular_solve": (linalg.triangular_solve, np.tril(A), B),
            "triangular_solve upper": (linalg.triangular_solve, np.triu(A), B, False),
            "lstsq": (linalg.lstsq, np.vstack([A, B]), np.ones((4, 1))),
            "lstsq regularized": (linalg.lstsq, np.vstack([A, B]), np.ones((4, 1)), 0.5),
            "pinv": (linalg.pinv, np.vstack([A, B])),
            "matrix_rank": (linalg.matrix_rank, np.ones((2, 2))),
            "qr product": (lambda: tf.matmul(*linalg.qr(A)),),
            "svd values": (lambda: linalg.svd(A, compute_uv=False),),
            "svd shapes": (lambda: [part.numpy().shape for part in linalg.svd(np.ones((3, 2)))],),
            "eigh values": (lambda: linalg.eigh(SYMMETRIC)[0],),
            "eigvalsh": (linalg.eigvalsh, SYMMETRIC),
            "eigvals dtype": (lambda: linalg.eigvals(tf.constant(A)).dtype,),
            "expm": (linalg.expm, A / 4),
            "lu": (lambda: tuple(linalg.lu(A)),),
        },
    )


def norms(tf, ask):
    x = np.array([[3.0, -4.0], [1.0, 2.0]])
    return _each(
        ask,
        {
            "norm": (tf.norm, x),
            "norm rows": (lambda: tf.norm(x, axis=1),),
            "norm 1": (lambda: tf.norm(x, ord=1, axis=1, keepdims=True),),
            "norm inf": (lambda: tf.norm(x, ord=np.inf, axis=0),),
            "norm 3": (lambda: tf.norm(x, ord=3, axis=0),),
            "norm fro": (lambda: tf.norm(x, ord="fro", axis=[0, 1]),),
            "norm of matrix 1": (lambda: tf.norm(x, ord=1, axis=[0, 1]),),
            "norm unknown": (lambda: tf.norm(x, ord="nope"),),
            "norm ints": (tf.norm, [3, 4]),
            "normalize": (lambda: tuple(tf.linalg.normalize(x, axis=1)),),
            "global_norm": (lambda: tf.linalg.global_norm([x, None, x[0]]),),
            "clip_by_value": (tf.clip_by_value, x, -1.0, 2.0),
            "clip_by_value ints": (tf.clip_by_value, [1, 5, 9], 2, 6),
            "clip_by_value tensors": (tf.clip_by_value, x, x - 1, np.zeros((2, 2))),
            "clip_by_norm": (tf.clip_by_norm, x, 2.0),
            "clip_by_norm rows": (tf.clip_by_norm, x, 2.0, [1]),
            "clip_by_norm below": (tf.clip_by_norm, x, 99.0),
            "clip_by_norm zeros": (tf.clip_by_norm, np.zeros(2), 1.0),
            "clip_by_global_norm": (lambda: tf.clip_by_global_norm([x, x[0]], 2.0),),
            "clip_by_global_norm infinite": (
                lambda: tf.clip_by_global_norm([np.array([np.inf]), x[0]], 2.0),
            ),
            "clip_by_global_norm no list": (tf.clip_by_global_norm, x, 2.0),
        },
    )


def in_a_map(tf, ask):
    dataset = tf.data.Dataset.from_tensor_slices(BATCH)

    def of(x):
        return {
            "matmul": tf.matmul(x, x),
            "inv": tf.linalg.inv(x),
            "det": tf.linalg.det(x),
            "solve": tf.linalg.solve(x, x),
            "trace": tf.linalg.trace(x),
            "diag_part": tf.linalg.diag_part(x),
            "band_part": tf.linalg.band_part(x, 0, -1),
            "eye": tf.eye(2, dtype=x.dtype) * x,
            "norm": tf.norm(x, axis=0),
            "clip_by_norm": tf.clip_by_norm(x, 1.0),
            "einsum": tf.einsum("ij->ji", x),
            "tensordot": tf.tensordot(x, x, 1),
        }

    mapped = dataset.map(of)
    elements = list(mapped)
    return {
        name: (spec, [element[name] for element in elements])
        for name, spec in mapped.element_spec.items()
    }
