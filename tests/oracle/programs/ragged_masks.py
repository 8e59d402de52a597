"""Boolean masks on ragged tensors of every rank."""


def masks(tf, ask):
    """Masks of each rank that a nested ragged tensor can have."""
    rows = [[[1], [5, 4]], [[], [2, -1, 5], []], [], [[3, -3, 0]]]
    mask = tf.ragged.boolean_mask
    nested = tf.ragged.constant(rows)
    narrow = tf.ragged.constant(rows, row_splits_dtype=tf.int32)
    deep = tf.ragged.constant([rows, [], rows[1:3]])
    pairs = tf.ragged.constant([[[1, -2], [3, 4]], [], [[-5, 6]]], ragged_rank=1)
    some_rows = tf.ragged.constant([[True, False], [False, True, True], [], [True]])
    return {
        "two ragged axes": ask(lambda: mask(nested, nested > 0)),
        "two ragged axes with int32 splits": ask(lambda: mask(narrow, narrow > 0)),
        "three ragged axes": ask(lambda: mask(deep, deep > 0)),
        "a mask of the middle rows": ask(lambda: mask(nested, some_rows)),
        "a mask of the outer rows": ask(lambda: mask(nested, [True, False, True, True])),
        "a dense inner axis": ask(lambda: mask(pairs, pairs > 0)),
        "a dense inner axis, whole pairs": ask(
            lambda: mask(pairs, tf.ragged.constant([[False, True], [], [True]]))
        ),
        "a dense mask": ask(
            lambda: mask(
                tf.ragged.constant([[[1, 2], [3]], [[], [4]]]), [[True, False], [False, True]]
            )
        ),
        "a dense mask with int32 splits": ask(
            lambda: mask(
                tf.ragged.constant([[1, 2], [3, 4]], row_splits_dtype=tf.int32),
                [[True, False], [False, True]],
            )
        ),
        "other rows": ask(lambda: mask(nested, nested[1:] > 0)),
        "an empty dense tensor": ask(
            lambda: tf.RaggedTensor.from_tensor(tf.zeros([2, 0, 0]), ragged_rank=2)
        ),
        "splits of a mask": ask(lambda: mask(narrow, narrow > 0).row_splits),
        "splits of an inner mask": ask(lambda: mask(nested, nested > 0).values.row_splits),
    }
