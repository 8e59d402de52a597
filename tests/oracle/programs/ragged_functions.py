"""Functions of tensors on ragged tensors, and functions that make them."""


def _values(tf):
    return (
        tf.ragged.constant([[1, 2, 3], [], [4, 5]]),
        tf.ragged.constant([[[1], [2, 3]], [], [[4]]]),
        tf.ragged.constant([[1.5, 2.5], [], [3.0]]),
    )


def reductions(tf, ask):
    """Every reduction, along every axis."""
    rows, nested, floats = _values(tf)
    found = {}
    for name in ("sum", "mean", "max", "min", "prod"):
        reduce = getattr(tf, f"reduce_{name}")
        for axis in (None, 0, 1, -1, -2, 2, [0, 1]):
            found[f"{name} along {axis}"] = ask(lambda r=reduce, a=axis: r(rows, axis=a))
            found[f"{name} of floats along {axis}"] = ask(
                lambda r=reduce, a=axis: r(floats, axis=a)
            )
        for axis in (1, 2, -1, [1, 2], [0, 1]):
            found[f"{name} of nested rows along {axis}"] = ask(
                lambda r=reduce, a=axis: r(nested, axis=a)
            )
        found[f"{name}, keepdims"] = ask(lambda r=reduce: r(rows, axis=1, keepdims=True))
        found[f"{name} of nested rows, keepdims"] = ask(
            lambda r=reduce: r(nested, axis=1, keepdims=True)
        )
    for name in ("any", "all"):
        reduce = getattr(tf, f"reduce_{name}")
        for axis in (None, 0, 1):
            found[f"{name} along {axis}"] = ask(lambda r=reduce, a=axis: r(rows > 2, axis=a))
    return found


def arranged(tf, ask):
    """Shapes that change."""
    rows, nested, _ = _values(tf)
    once = tf.expand_dims
    return {
        "concat along 0": ask(lambda: tf.concat([rows, rows], 0)),
        "concat along 1": ask(lambda: tf.concat([rows, [[7], [8], [9]]], 1)),
        "concat along the last": ask(lambda: tf.concat([nested, nested], 2)),
        "concat of other rows": ask(lambda: tf.concat([rows, [[7], [8]]], 1)),
        "concat of other ranks": ask(lambda: tf.concat([rows, nested], 0)),
        "stack along 0": ask(lambda: tf.stack([rows, rows])),
        "stack along 1": ask(lambda: tf.stack([rows, rows], 1)),
        "stack along 2": ask(lambda: tf.stack([rows, rows], 2)),
        "stack along the last": ask(lambda: tf.stack([rows, rows], -1)),
        "expand_dims at 0": ask(lambda: once(rows, 0)),
        "expand_dims at 1": ask(lambda: once(rows, 1)),
        "expand_dims at 2": ask(lambda: once(rows, 2)),
        "expand_dims at the end": ask(lambda: once(rows, -1)),
        "squeeze at 0": ask(lambda: tf.squeeze(once(rows, 0), 0)),
        "squeeze at 1": ask(lambda: tf.squeeze(once(rows, 1), 1)),
        "squeeze at 2": ask(lambda: tf.squeeze(once(rows, 2), [2])),
        "squeeze without an axis": ask(lambda: tf.squeeze(once(rows, 0))),
        "squeeze of a long axis": ask(lambda: tf.squeeze(rows, 0)),
        "squeeze of ragged rows": ask(lambda: tf.squeeze(rows, 1)),
        "tile rows": ask(lambda: tf.tile(rows, [2, 1])),
        "tile inside": ask(lambda: tf.tile(rows, [1, 2])),
        "tile nested": ask(lambda: tf.tile(nested, [2, 2, 2])),
        "tile to nothing": ask(lambda: tf.tile(rows, [1, 0])),
        "reverse rows": ask(lambda: tf.reverse(rows, [0])),
        "reverse inside": ask(lambda: tf.reverse(rows, [1])),
        "reverse both": ask(lambda: tf.reverse(rows, [0, -1])),
        "reverse nested": ask(lambda: tf.reverse(nested, [1, 2])),
        "size": ask(lambda: tf.size(nested)),
        "rank": ask(lambda: tf.rank(nested)),
        "identity": ask(lambda: tf.identity(rows)),
        "zeros_like": ask(lambda: tf.zeros_like(rows)),
        "ones_like": ask(lambda: tf.ones_like(rows)),
        "one_hot": ask(lambda: tf.one_hot(rows, 3)),
        "add_n": ask(lambda: tf.add_n([rows, rows, rows])),
    }  # fmt: skip


def picked(tf, ask):
    """Values and rows at positions."""
    rows, nested, floats = _values(tf)
    constant = tf.ragged.constant
    table = tf.constant([10, 20, 30, 40, 50, 60])
    return {
        "gather rows": ask(lambda: tf.gather(rows, [2, 0])),
        "gather one row": ask(lambda: tf.gather(rows, 1)),
        "gather nested rows": ask(lambda: tf.gather(nested, [2, 0, 0])),
        "gather by ragged": ask(lambda: tf.gather(table, rows)),
        "gather ragged by ragged": ask(lambda: tf.gather(rows, constant([[0], [2, 1]]))),
        "gather inside": ask(lambda: tf.gather(rows, constant([[0], [], [1, 0]]), batch_dims=1)),
        "gather inside a matrix": ask(
            lambda: tf.gather(tf.constant([[1, 2], [3, 4]]), constant([[0], [1, 1]]), batch_dims=1)
        ),
        "gather outside": ask(lambda: tf.gather(rows, [5])),
        "gather_nd": ask(lambda: tf.gather_nd(rows, [[0, 1], [2, 0]])),
        "gather_nd rows": ask(lambda: tf.gather_nd(rows, [[0], [2]])),
        "gather_nd outside of a row": ask(lambda: tf.gather_nd(rows, [[1, 0]])),
        "where": ask(lambda: tf.where(rows > 2, rows, -rows)),
        "where with a scalar": ask(lambda: tf.where(rows > 2, rows, 0)),
        "where alone": ask(lambda: tf.where(rows > 2)),
        "where of other rows": ask(lambda: tf.where([True, False, True], rows, rows)),
        "softmax": ask(lambda: tf.nn.softmax(floats)),
        "embedding_lookup": ask(lambda: tf.nn.embedding_lookup(tf.ones([6, 2]), rows)),
        "map_fn": ask(lambda: tf.map_fn(lambda x: x + 1, rows)),
        "map_fn to scalars": ask(
            lambda: tf.map_fn(tf.reduce_sum, rows, fn_output_signature=tf.int32)
        ),
        "map_fn to rows": ask(
            lambda: tf.map_fn(
                lambda x: x[:1], rows, fn_output_signature=tf.RaggedTensorSpec([None], tf.int32)
            )
        ),
        "map_fn to scalars, unasked": ask(lambda: tf.map_fn(tf.reduce_sum, rows)),
    }


def made(tf, ask):
    """Functions of tf.ragged and tf.strings that make or join rows."""
    constant = tf.ragged.constant
    words = constant([["a", "b", "c"], [], ["d"]])
    one, two = constant([["a"], ["b", "c"]]), constant([["d"], ["e"]])
    numbers = constant([[1], [2, -3]])
    ngrams = tf.strings.ngrams
    return {
        "cross": ask(lambda: tf.ragged.cross([one, two])),
        "cross of a tensor": ask(lambda: tf.ragged.cross([tf.constant([[1], [2]]), one])),
        "cross of three": ask(lambda: tf.ragged.cross([one, numbers, two])),
        "cross_hashed": ask(lambda: tf.ragged.cross_hashed([one, two], 100)),
        "cross_hashed with a key": ask(lambda: tf.ragged.cross_hashed([numbers, two], 100, 5)),
        "cross_hashed without buckets": ask(lambda: tf.ragged.cross_hashed([one, numbers])),
        "partitions": ask(
            lambda: tf.ragged.stack_dynamic_partitions(["a", "b", "c", "d"], [1, 0, 1, 3], 5)
        ),
        "partitions of rows": ask(
            lambda: tf.ragged.stack_dynamic_partitions(words, tf.constant([1, 0, 1]), 2)
        ),
        "too few partitions": ask(lambda: tf.ragged.stack_dynamic_partitions(["a"], [3], 2)),
        "ngrams": ask(lambda: ngrams(words, 2)),
        "ngrams with pads": ask(lambda: ngrams(words, 2, pad_values=("L", "R"))),
        "ngrams of two widths": ask(lambda: ngrams(words, (1, 2), "|")),
        "short ngrams": ask(lambda: ngrams(words, 3, preserve_short_sequences=True)),
        "narrow pads": ask(lambda: ngrams(words, 3, pad_values="_", padding_width=1)),
        "narrow pads of short rows": ask(
            lambda: ngrams(words, 5, "-", "_", 1, preserve_short_sequences=True)
        ),
        "ngrams of a vector": ask(lambda: ngrams(["a", "b", "c"], 2)),
        "ngrams of a matrix": ask(lambda: ngrams([["a", "b", "c"]] * 2, 2)),
        "ngrams of a scalar": ask(lambda: ngrams("a", 2)),
        "ngrams of no width": ask(lambda: ngrams(words, 0)),
        "reduce_join of rows": ask(lambda: tf.strings.reduce_join(words, axis=1)),
        "reduce_join of columns": ask(lambda: tf.strings.reduce_join(words, axis=0)),
        "reduce_join with a separator": ask(
            lambda: tf.strings.reduce_join(words, axis=-1, separator="-")
        ),
        "reduce_join of all": ask(lambda: tf.strings.reduce_join(words, separator="-")),
        "join": ask(lambda: tf.strings.join([words, words, "!"], "-")),
        "substr": ask(lambda: tf.strings.substr(words, 0, 1)),
        "segments": ask(
            lambda: tf.strings.unsorted_segment_join(["a", "b", "c"], [1, 0, 1], 3, separator="-")
        ),
        "segments of rows": ask(
            lambda: tf.strings.unsorted_segment_join([["a", "b"], ["c", "d"]], [1, 1], 2)
        ),
        "too few segments": ask(lambda: tf.strings.unsorted_segment_join(["a"], [2], 2)),
    }
