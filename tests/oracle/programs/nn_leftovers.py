"""Functions of `nn` and `linalg` for embeddings, larger tensors, blocks and special matrices."""

import numpy as np


def embeddings(tf, ask):
    table = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 8.0]])
    places = [[0, 0], [0, 2], [2, 0], [2, 1]]
    ids = tf.SparseTensor(places, tf.constant([1, 3, 0, 1], tf.int64), [4, 3])
    weights = tf.SparseTensor(places, [1.0, 2.0, 0.5, -1.0], [4, 3])
    wrong = tf.SparseTensor(places, tf.constant([1, -3, -1, -1], tf.int64), [4, 3])
    ragged = tf.ragged.constant([[1, 3], [0]], dtype=tf.int64)
    lookup, safe = tf.nn.embedding_lookup_sparse, tf.nn.safe_embedding_lookup_sparse
    answers = {}
    for combiner in ("mean", "sum", "sqrtn"):
        answers |= {
            f"{combiner}": ask(lookup, table, ids, None, combiner=combiner),
            f"{combiner} weighted": ask(lookup, table, ids, weights, combiner=combiner),
            f"{combiner} safe": ask(safe, table, ids, None, combiner=combiner),
            f"{combiner} safe, weighted": ask(safe, table, ids, weights, combiner=combiner),
            f"{combiner} safe, wrong ids": ask(safe, table, wrong, None, combiner=combiner),
        }
    return answers | {
        "default": ask(lookup, table, ids, None),
        "ragged": ask(lookup, table, ragged, None, combiner="sum"),
        "shrunk": ask(lookup, table, ids, None, combiner="sum", max_norm=1.0),
        "a default id": ask(safe, table, wrong, None, default_id=2),
        "a cube": ask(safe, table, tf.sparse.reshape(ids, [2, 2, 3])),
        "a variable": ask(lookup, tf.Variable(table), ids, None, combiner="sum"),
        "unknown combiner": ask(lookup, table, ids, None, combiner="max"),
        "dense ids": ask(lookup, table, [[0]], None),
    }


def larger(tf, ask):
    line = np.arange(6, dtype=np.float32).reshape(1, 3, 2)
    cube = np.arange(8, dtype=np.float32).reshape(1, 2, 2, 1, 2)
    image = np.arange(8, dtype=np.float32).reshape(1, 2, 2, 2)
    nn = tf.nn

    def filters(*shape):
        return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)

    return {
        "conv1d_transpose": ask(nn.conv1d_transpose, line, filters(3, 4, 2), [1, 6, 4], 2),
        "conv1d_transpose VALID": ask(
            nn.conv1d_transpose, line, filters(2, 1, 2), [1, 4, 1], 1, "VALID"
        ),
        "conv3d_transpose": ask(
            nn.conv3d_transpose, cube, filters(2, 2, 1, 1, 2), [1, 4, 4, 1, 1], [1, 2, 2, 1, 1]
        ),
        "conv_transpose": ask(nn.conv_transpose, line, filters(3, 4, 2), [1, 6, 4], 2),
        "conv_transpose image": ask(
            nn.conv_transpose, image, filters(2, 2, 1, 2), [1, 4, 4, 1], [2, 2]
        ),
        "pool MAX": ask(nn.pool, image, [2, 1], "MAX"),
        "pool AVG": ask(nn.pool, image, [2, 2], "AVG", strides=[1, 1], padding="SAME"),
        "pool line": ask(nn.pool, line, [2], "AVG", strides=[2]),
        "pool unknown": ask(nn.pool, image, [2, 2], "SUM"),
    }


def blocks(tf, ask):
    image = np.arange(16).reshape(1, 4, 4, 1)
    batch = np.arange(16).reshape(4, 2, 2, 1)
    to_batch, to_space = tf.space_to_batch, tf.batch_to_space
    return {
        "to batch": ask(to_batch, image, [2, 2], [[0, 0], [0, 0]]),
        "to batch, padded": ask(to_batch, image, [2, 2], [[1, 1], [2, 0]]),
        "to batch, one axis": ask(to_batch, image, [2], [[0, 0]]),
        "to batch, not divisible": ask(to_batch, image, [3, 2], [[0, 0], [0, 0]]),
        "to space": ask(to_space, batch, [2, 2], [[0, 0], [0, 0]]),
        "to space, cropped": ask(to_space, batch, [2, 2], [[1, 0], [0, 2]]),
        "to space, not divisible": ask(to_space, batch, [3, 2], [[0, 0], [0, 0]]),
        "in nn": ask(tf.nn.space_to_batch, image, [2, 2], [[0, 0], [0, 0]]),
    }


def matrices(tf, ask):
    linalg = tf.linalg
    a = np.array([[1.0, 2.0, 0.0], [3.0, 4.0, 5.0], [0.0, 6.0, 7.0]])
    many = np.stack([a, a.T + np.eye(3)])
    right = tf.constant([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], tf.float64)
    compact = tf.constant([[2.0, 5.0, 0.0], [1.0, 4.0, 7.0], [0.0, 3.0, 6.0]], tf.float64)
    sequence = ([2.0, 5.0], [1.0, 4.0, 7.0], [3.0, 6.0])
    root = np.array([[5.0, 4.0], [4.0, 5.0]])
    return {
        "lu_solve": ask(lambda: linalg.lu_solve(*linalg.lu(a), right)),
        "lu_solve many": ask(lambda: linalg.lu_solve(*linalg.lu(many), tf.stack([right, right]))),
        "lu_reconstruct": ask(lambda: linalg.lu_reconstruct(*linalg.lu(many))),
        "lu_matrix_inverse": ask(lambda: linalg.lu_matrix_inverse(*linalg.lu(a))),
        "sqrtm": ask(linalg.sqrtm, root),
        "sqrtm many": ask(linalg.sqrtm, np.stack([root, root + np.eye(2)])),
        "tridiagonal_solve": ask(linalg.tridiagonal_solve, compact, right),
        "tridiagonal_solve vector": ask(linalg.tridiagonal_solve, compact, right[:, 0]),
        "tridiagonal_solve matrix": ask(
            linalg.tridiagonal_solve, tf.constant(a), right, diagonals_format="matrix"
        ),
        "tridiagonal_solve sequence": ask(
            lambda: linalg.tridiagonal_solve(
                [tf.constant(part, tf.float64) for part in sequence],
                right,
                diagonals_format="sequence",
            )
        ),
        "tridiagonal_solve transposed": ask(
            linalg.tridiagonal_solve, compact, tf.transpose(right), transpose_rhs=True
        ),
        "tridiagonal_solve unknown": ask(
            linalg.tridiagonal_solve, compact, right, diagonals_format="rows"
        ),
        "tridiagonal_matmul": ask(linalg.tridiagonal_matmul, compact, right),
        "tridiagonal_matmul matrix": ask(
            linalg.tridiagonal_matmul, a, right, diagonals_format="matrix"
        ),
    }
