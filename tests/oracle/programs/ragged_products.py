"""Products of ragged matrices, and ragged functions that get a wrong rank or axis."""


def products(tf, ask):
    """`matmul` of matrices that are uneven, empty or of other ranks."""
    make = tf.ragged.constant
    uneven = make([[[1.0, 2.0], [3.0]]])
    square = make([[[1.0, 2.0], [3.0, 4.0]]])
    matrix = make([[1.0, 2.0], [3.0, 4.0]])
    nothing = make([], ragged_rank=2, dtype=tf.float32)
    no_rows = make([], ragged_rank=1, inner_shape=(2,), dtype=tf.float32)
    deep = make([[[[1.0, 2.0], [3.0, 4.0]]], []])
    ones = tf.ones([1, 2, 2])
    pairs = {
        "uneven by uneven": (uneven, uneven),
        "uneven by square": (uneven, square),
        "square by uneven": (square, uneven),
        "uneven by dense": (uneven, ones),
        "dense by uneven": (ones, uneven),
        "square by square": (square, square),
        "dense by square": (ones, square),
        "square by dense": (square, ones),
        "no matrices": (nothing, nothing),
        "no matrices of known width": (no_rows, tf.ones([0, 2, 3])),
        "dense without matrices": (tf.ones([0, 2, 2]), nothing),
        "one matrix": (matrix, matrix),
        "one matrix by dense": (matrix, tf.ones([2, 2])),
        "one uneven matrix": (make([[1.0, 2.0], [3.0]]), matrix),
        "other ranks": (square, tf.ones([1, 2])),
        "other sizes": (square, tf.ones([1, 3, 2])),
        "nested batches": (deep, deep),
    }
    return {name: ask(lambda a=a, b=b: tf.matmul(a, b)) for name, (a, b) in pairs.items()}


def wrong_ranks(tf, ask):
    """Axes that a tensor does not have, and inputs that are not matrices."""
    rows = tf.ragged.constant([[1, 2], [3]])
    nested = tf.ragged.constant([[[1, 2], [3]], [[4]]])
    return {
        "merge an axis beyond the last": ask(lambda: rows.merge_dims(1, 2)),
        "merge an axis before the first": ask(lambda: rows.merge_dims(-3, 1)),
        "cross of nested rows": ask(lambda: tf.ragged.cross([nested, nested])),
        "hashes of nested rows": ask(lambda: tf.ragged.cross_hashed([nested, nested])),
    }
