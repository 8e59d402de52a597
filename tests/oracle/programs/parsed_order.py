"""The order of the keys in what `parse_example` and kin return."""


def keys(tf, ask):
    fixed = tf.io.FixedLenFeature([], tf.int64, default_value=0)
    varying = tf.io.VarLenFeature(tf.int64)
    sequence = tf.io.FixedLenSequenceFeature([], tf.int64, allow_missing=True)
    features = {"z": fixed, "age": fixed, "tags": varying, "b": varying, "m": sequence}
    context = {"z": fixed, "tags": varying, "a": fixed, "b": varying}
    steps = {"y": sequence, "a": varying, "c": sequence, "d": varying}
    example = tf.train.Example().SerializeToString()
    several = tf.train.SequenceExample().SerializeToString()
    return {
        "one": ask(lambda: list(tf.io.parse_single_example(example, features))),
        "batch": ask(lambda: list(tf.io.parse_example([example], features))),
        "dense": ask(lambda: list(tf.io.parse_example([example], {"z": fixed, "a": fixed}))),
        "sequence": ask(
            lambda: [
                list(part) for part in tf.io.parse_single_sequence_example(several, context, steps)
            ]
        ),
        "sequences": ask(
            lambda: [
                list(part) for part in tf.io.parse_sequence_example([several], context, steps)[:2]
            ]
        ),
    }


def ragged(tf, ask):
    """RaggedFeature, with every partition."""
    feature = tf.io.RaggedFeature

    def example(**lists):
        values = {
            name: tf.train.Feature(int64_list=tf.train.Int64List(value=value))
            for name, value in lists.items()
        }
        return tf.train.Example(features=tf.train.Features(feature=values)).SerializeToString()

    records = [example(v=[1, 2]), example(), example(v=[3])]
    rows = [example(v=[1, 2, 3, 4], l=[1, 3], s=[0, 1, 4], b=[0, 1], e=[1, 4], i=[0, 1, 1, 1])]
    partitions = {
        "splits": [feature.RowSplits("s")],
        "lengths": [feature.RowLengths("l")],
        "starts": [feature.RowStarts("b")],
        "limits": [feature.RowLimits("e")],
        "rowids": [feature.ValueRowIds("i")],
        "uniform": [feature.UniformRowLength(2)],
        "two": [feature.UniformRowLength(2), feature.RowLengths("l")],
    }
    dataset = tf.data.Dataset.from_tensor_slices(records)
    plain = {"v": feature(tf.int64)}
    mixed = {"a": feature(tf.int64), "z": tf.io.VarLenFeature(tf.int64), "b": feature(tf.int64)}
    return {
        f"{label}, {kind}": ask(parse, serialized, {"v": feature(tf.int64, "v", partition)})
        for label, partition in partitions.items()
        for kind, parse, serialized in (
            ("one", tf.io.parse_single_example, rows[0]),
            ("batch", tf.io.parse_example, rows * 2),
        )
    } | {
        "no partition, one": ask(lambda: tf.io.parse_single_example(records[0], plain)),
        "missing": ask(lambda: tf.io.parse_single_example(records[1], plain)),
        "no partition, batch": ask(lambda: tf.io.parse_example(records, plain)),
        "int64 splits": ask(
            lambda: tf.io.parse_example(
                records, {"v": feature(tf.int64, row_splits_dtype=tf.int64)}
            )
        ),
        "another key": ask(lambda: tf.io.parse_example(records, {"x": feature(tf.int64, "v")})),
        "wrong dtype": ask(lambda: tf.io.parse_example(records, {"v": feature(tf.float32)})),
        "no such dtype": ask(lambda: tf.io.parse_example(records, {"v": feature(tf.int32)})),
        "no partition of ours": ask(
            lambda: tf.io.parse_example(records, {"v": feature(tf.int64, "v", [3])})
        ),
        "order": ask(lambda: list(tf.io.parse_example(records, mixed))),
        "in a map": ask(lambda: list(dataset.map(lambda x: tf.io.parse_single_example(x, plain)))),
        "in a map of batches": ask(
            lambda: list(dataset.batch(2).map(lambda x: tf.io.parse_example(x, plain)))
        ),
    }


def kinds(tf, ask):
    """Two features of any two kinds, with either key first."""
    read = {"one": tf.io.parse_single_example, "batch": tf.io.parse_example}
    example = tf.train.Example().SerializeToString()
    ragged = tf.io.RaggedFeature
    of_kind = {
        "fixed": tf.io.FixedLenFeature([], tf.int64, default_value=0),
        "sequence": tf.io.FixedLenSequenceFeature([], tf.float32, allow_missing=True),
        "varying": tf.io.VarLenFeature(tf.int64),
        "sparse": tf.io.SparseFeature("i", "v", tf.int64, 5),
        "sparse of its own": tf.io.SparseFeature("i", "y", tf.int64, 5),
        "ragged": ragged(tf.int64),
        "ragged of another": ragged(tf.int64, "q"),
        "rows": ragged(tf.int64, "y", [ragged.RowLengths("l")]),
        "rows of another": ragged(tf.int64, "q", [ragged.RowLengths("l")]),
    }

    def keys_of(parse, features):
        return list(parse(example if parse is read["one"] else [example], features))

    return {
        f"{first} and {second}, {other}, {label}": ask(
            keys_of, parse, {"y": of_kind[first], other: of_kind[second]}
        )
        for first in of_kind
        for second in of_kind
        if first != second and "of its own" not in second and second != "rows"
        for other in ("a", "z")
        for label, parse in read.items()
    }
