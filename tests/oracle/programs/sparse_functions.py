"""The functions of `tf.sparse`, and the operators of sparse tensors."""

import numpy as np


def _matrix(tf, dtype=None):
    values = tf.constant([1, -2, 3, 4], dtype or tf.int32)
    return tf.SparseTensor([[0, 0], [0, 2], [1, 1], [2, 0]], values, [3, 4])


def _other(tf, dtype=None):
    values = tf.constant([10, 20, -3], dtype or tf.int32)
    return tf.SparseTensor([[0, 1], [0, 2], [1, 1]], values, [3, 4])


def _texts(tf):
    return tf.SparseTensor([[0, 1], [1, 0]], ["a", "b"], [2, 2])


def _mixed_up(tf):
    return tf.SparseTensor([[2, 1], [0, 3], [0, 0], [1, 2]], [1.0, 2.0, 3.0, 4.0], [3, 4])


def _cube(tf):
    return tf.SparseTensor(
        [[0, 0, 0], [0, 0, 1], [0, 1, 0], [1, 1, 1]], [1.0, 2.0, -3.0, 4.0], [2, 2, 2]
    )


def layout(tf, ask):
    a, cube = _matrix(tf), _cube(tf)
    s = tf.sparse
    return {
        "reorder": ask(s.reorder, _mixed_up(tf)),
        "reorder text": ask(s.reorder, _texts(tf)),
        "reshape": ask(s.reshape, a, [4, 3]),
        "reshape -1": ask(s.reshape, a, [2, -1]),
        "reshape flat": ask(s.reshape, cube, [-1]),
        "reshape mixed up": ask(s.reshape, _mixed_up(tf), [12]),
        "reshape wrong": ask(s.reshape, a, [5, 2]),
        "reshape two open": ask(s.reshape, a, [-1, -1]),
        "transpose": ask(s.transpose, a),
        "transpose cube": ask(s.transpose, cube, [1, 2, 0]),
        "transpose text": ask(s.transpose, _texts(tf)),
        "expand_dims": ask(s.expand_dims, a),
        "expand_dims 0": ask(s.expand_dims, a, 0),
        "expand_dims -2": ask(s.expand_dims, a, -2),
        "expand_dims too far": ask(s.expand_dims, a, 5),
        "retain": ask(s.retain, a, [True, False, False, True]),
        "retain none": ask(s.retain, a, [False] * 4),
        "reset_shape": ask(s.reset_shape, a, [5, 5]),
        "reset_shape tight": ask(s.reset_shape, a),
        "reset_shape too small": ask(s.reset_shape, a, [2, 2]),
        "reset_shape another rank": ask(s.reset_shape, a, [5]),
        "fill_empty_rows": ask(
            s.fill_empty_rows, tf.SparseTensor([[1, 2], [3, 0]], [5, 6], [5, 3]), -1
        ),
        "fill_empty_rows text": ask(
            s.fill_empty_rows, tf.SparseTensor([[1, 0]], ["a"], [2, 3]), "z"
        ),
        "fill_empty_rows of none": ask(
            s.fill_empty_rows, tf.SparseTensor(np.zeros([0, 2], np.int64), np.zeros(0), [2, 3]), 0.5
        ),
        "slice": ask(s.slice, a, [0, 1], [2, 2]),
        "slice over the end": ask(s.slice, a, [1, 1], [9, 9]),
        "split": ask(s.split, a, 2, 1),
        "split uneven": ask(s.split, a, 2, 0),
        "split last axis": ask(s.split, a, 4, -1),
        "split too many": ask(s.split, a, 9, 0),
        "split nothing": ask(s.split, a),
        "concat": ask(s.concat, 0, [a, _other(tf)]),
        "concat columns": ask(s.concat, 1, [a, _other(tf)]),
        "concat -1": ask(s.concat, -1, [_texts(tf), _texts(tf)]),
        "concat wrong": ask(s.concat, 0, [a, tf.SparseTensor([[0, 0]], [1], [1, 2])]),
        "concat expanded": ask(
            s.concat, 0, [a, tf.SparseTensor([[0, 0]], [1], [1, 9])], expand_nonconcat_dims=True
        ),
        "from_dense": ask(s.from_dense, [[0, 1], [2, 0]]),
        "from_dense floats": ask(s.from_dense, np.array([0.0, 2.5])),
        "from_dense text": ask(s.from_dense, [["", "a"], ["b", ""]]),
        "from_dense bools": ask(s.from_dense, [True, False]),
        "eye": ask(s.eye, 2),
        "eye wide": ask(s.eye, 2, 3, dtype=tf.int32),
        "to_dense": ask(s.to_dense, a),
        "to_dense filled": ask(s.to_dense, a, 9),
        "to_dense text": ask(s.to_dense, _texts(tf), "z"),
        "to_dense mixed up": ask(s.to_dense, _mixed_up(tf)),
        "to_dense mixed up, unchecked": ask(s.to_dense, _mixed_up(tf), validate_indices=False),
        "to_dense outside": ask(s.to_dense, tf.SparseTensor([[5]], [1], [3])),
        "to_dense twice": ask(s.to_dense, tf.SparseTensor([[1], [1]], [1, 2], [3])),
        "a dense one": ask(s.reorder, [1, 2]),
    }


def mathematics(tf, ask):
    a, b, cube = _matrix(tf), _other(tf), _cube(tf)
    s = tf.sparse
    floats = _matrix(tf, tf.float32)
    dense = np.arange(8, dtype=np.float32).reshape(4, 2)
    complexes = tf.SparseTensor([[0, 1]], tf.constant([1 + 2j], tf.complex64), [2, 2])
    return {
        "add": ask(s.add, a, b),
        "add cancels": ask(s.add, a, tf.SparseTensor([[1, 1]], [-3], [3, 4])),
        "add threshold": ask(s.add, a, b, 5),
        "add dense": ask(s.add, a, np.ones([3, 4], np.int32)),
        "add to dense": ask(s.add, np.ones([3, 4], np.int32), a),
        "add other shapes": ask(s.add, a, tf.SparseTensor([[0, 0]], [1], [3, 5])),
        "add other dtypes": ask(s.add, a, floats),
        "add dense ones": ask(s.add, [1], [2]),
        "maximum": ask(s.maximum, a, b),
        "minimum": ask(s.minimum, a, b),
        **{
            f"{name} {label}": ask(getattr(s, name), *args)
            for name in ("reduce_sum", "reduce_max")
            for label, args in {
                "all": (a,),
                "rows": (a, 0),
                "columns": (a, 1),
                "last": (cube, -1),
                "two": (cube, [0, 2]),
                "kept": (a, 1, True),
                "all kept": (a, None, True),
                "sparse": (a, 1, False, True),
                "sparse kept": (cube, 0, True, True),
                "outside": (a, 5),
                "negative only": (tf.SparseTensor([[0, 0]], [-1.0], [2, 2]), 1),
            }.items()
        },
        "softmax": ask(s.softmax, floats),
        "softmax cube": ask(s.softmax, cube),
        "softmax vector": ask(s.softmax, tf.SparseTensor([[0]], [1.0], [2])),
        "softmax ints": ask(s.softmax, a),
        "map_values": ask(s.map_values, tf.square, a),
        "map_values two": ask(s.map_values, tf.add, a, a),
        "map_values and a number": ask(s.map_values, tf.add, a, 5),
        "map_values others": ask(s.map_values, tf.add, a, b),
        "map_values of none": ask(s.map_values, tf.square, [1]),
        "matmul": ask(s.sparse_dense_matmul, floats, dense),
        "matmul adjoint": ask(s.sparse_dense_matmul, floats, dense[:3], adjoint_a=True),
        "matmul both adjoint": ask(
            s.sparse_dense_matmul, floats, dense[:3].T, adjoint_a=True, adjoint_b=True
        ),
        "dense matmul": ask(s.sparse_dense_matmul, dense.T[:, :3], floats),
        "matmul complex": ask(
            s.sparse_dense_matmul, complexes, np.array([[1j], [2]], np.complex64), adjoint_a=True
        ),
        "matmul wrong": ask(s.sparse_dense_matmul, floats, dense[:3]),
        "mask": ask(
            lambda: (
                s.mask(
                    tf.IndexedSlices(tf.constant([[1.0], [2.0], [3.0]]), tf.constant([12, 26, 37])),
                    tf.constant([12, 37]),
                ).values
            )
        ),
        **{
            f"segment_{kind} {label}": ask(getattr(s, f"segment_{kind}"), *args)
            for kind in ("sum", "mean", "sqrt_n")
            for label, args in {
                "two": (dense, [0, 2, 3], [0, 0, 1]),
                "with a gap": (dense, [0, 1], [0, 2]),
                "numbered": (dense, [0, 1], [0, 1], 4),
                "unsorted": (dense, [0, 1], [1, 0]),
                "too few": (dense, [0, 1], [0, 5], 2),
            }.items()
        },
        "times": ask(lambda: a * 2),
        "times a row": ask(lambda: floats * tf.constant([[1.0, 2.0, 3.0, 4.0]])),
        "divided": ask(lambda: floats / 2.0),
        "ints divided": ask(lambda: a / 2),
        "times too long": ask(lambda: a * tf.ones([5], tf.int32)),
        "plus": ask(lambda: a + 1),
        "with_values": ask(a.with_values, [7, 8, 9, 10]),
        "with_values too few": ask(a.with_values, [7]),
        "get_shape": a.get_shape(),
    }


def counts(tf, ask):
    s = tf.sparse
    rows = tf.SparseTensor([[0, 0], [0, 2], [2, 1]], [3, 1, 3], [3, 3])
    dense = np.array([[1, 3, 3], [0, 0, 0]])
    weights = np.array([[0.5, 1.5, 2.0], [1.0, 1.0, 1.0]], np.float32)
    return {
        "to_indicator": ask(s.to_indicator, rows, 4),
        "to_indicator too small": ask(s.to_indicator, rows, 2),
        "to_indicator floats": ask(s.to_indicator, _cube(tf), 5),
        "vector": ask(s.bincount, [3, 1, 3]),
        "vector, each row": ask(s.bincount, [3, 1, 3], axis=-1),
        "matrix": ask(s.bincount, dense),
        "matrix, each row": ask(s.bincount, dense, axis=-1),
        "binary": ask(s.bincount, dense, axis=-1, binary_output=True),
        "weights": ask(s.bincount, dense, weights, axis=-1),
        "weights together": ask(s.bincount, dense, weights),
        "minlength": ask(s.bincount, dense, axis=-1, minlength=9),
        "maxlength": ask(s.bincount, dense, axis=-1, maxlength=2),
        "maxlength too long": ask(s.bincount, dense, axis=-1, maxlength=20),
        "sparse": ask(s.bincount, rows, axis=-1),
        "sparse together": ask(s.bincount, rows),
        "ragged": ask(s.bincount, tf.ragged.constant([[1, 1], [], [2]]), axis=-1),
        "another axis": ask(s.bincount, dense, axis=1),
        "negative": ask(s.bincount, [-1, 2], axis=-1),
    }


def crosses(tf, ask):
    s = tf.sparse
    words = tf.constant([["a", "b"], ["c", "d"]])
    numbers = tf.constant([[1, 2], [3, 4]], tf.int64)
    sparse = tf.SparseTensor([[0, 0], [1, 0], [1, 2]], ["x", "y", "z"], [2, 3])
    return {
        "dense": ask(s.cross, [words, words]),
        "sparse": ask(s.cross, [words, sparse]),
        "numbers": ask(s.cross, [words, numbers]),
        "three": ask(s.cross, [words, numbers, sparse]),
        "separator": ask(s.cross, [words, words], separator="-"),
        "empty rows": ask(s.cross, [words, tf.SparseTensor([[1, 0]], ["x"], [2, 1])]),
        "hashed": ask(s.cross_hashed, [words, words]),
        "hashed numbers": ask(s.cross_hashed, [words, numbers]),
        "hashed sparse": ask(s.cross_hashed, [sparse, words]),
        "hashed into buckets": ask(s.cross_hashed, [words, numbers], num_buckets=100),
        "hashed with a key": ask(s.cross_hashed, [words, words], num_buckets=100, hash_key=7),
        "floats": ask(s.cross, [words, tf.constant([[1.0], [2.0]])]),
    }


def in_maps(tf, ask):
    s = tf.sparse
    rows = tf.data.Dataset.from_tensor_slices(np.array([[0, 2, 0, 4], [5, 0, 0, 0]], np.float32))

    def run(function):
        return list(rows.map(function))

    return {
        "from dense": ask(run, s.from_dense),
        "and back": ask(run, lambda x: s.to_dense(s.from_dense(x))),
        "sum": ask(run, lambda x: s.reduce_sum(s.from_dense(x))),
        "reshaped": ask(run, lambda x: s.reshape(s.from_dense(x), [2, 2])),
        "multiplied": ask(
            run,
            lambda x: s.sparse_dense_matmul(s.reshape(s.from_dense(x), [2, 2]), tf.ones([2, 1])),
        ),
        "times": ask(run, lambda x: s.from_dense(x) * 2.0),
        "counted": ask(run, lambda x: s.bincount(tf.cast(x, tf.int32))),
        "segments": ask(run, lambda x: s.segment_sum(x, [0, 3], [0, 0])),
    }


def lengths_of_sparse_tensors(tf, ask):
    matrix, texts, cube = _matrix(tf), _texts(tf), _cube(tf)
    mapped = tf.data.Dataset.from_tensors(matrix)
    functions = {
        "shape": tf.shape,
        "size": tf.size,
        "rank": tf.rank,
        "identity": tf.identity,
    }
    return {
        f"{name} of {kind}": ask(function, tensor)
        for name, function in functions.items()
        for kind, tensor in {"a matrix": matrix, "texts": texts, "a cube": cube}.items()
    } | {
        f"{name} in a map": ask(lambda function=function: next(iter(mapped.map(function))))
        for name, function in functions.items()
    }
