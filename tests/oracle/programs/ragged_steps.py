"""`RaggedFeature` in feature lists, ragged and sparse results of Python functions, and ragged batches of one element."""

# pyright: basic


def _record(tf, **lists):
    def steps(values):
        return tf.train.FeatureList(
            feature=[tf.train.Feature(int64_list=tf.train.Int64List(value=v)) for v in values]
        )

    held = {name: steps(values) for name, values in lists.items()}
    lists = tf.train.FeatureLists(feature_list=held)
    return tf.train.SequenceExample(feature_lists=lists).SerializeToString()


def _records(tf):
    return [
        _record(tf, words=[[1, 2, 3], [], [4]], rows=[[1, 2], [], [1]]),
        _record(tf, words=[[9, 9]], rows=[[2]]),
        _record(tf),
    ]


def feature_lists(tf, ask):
    ragged = tf.io.RaggedFeature
    wanted = {
        "plain": ragged(tf.int64),
        "int64 splits": ragged(tf.int64, row_splits_dtype=tf.int64),
        "another name": ragged(tf.int64, value_key="rows"),
        "row lengths": ragged(tf.int64, partitions=[ragged.RowLengths("rows")]),
        "uniform rows": ragged(tf.int64, partitions=[ragged.UniformRowLength(1)]),
        "absent": ragged(tf.string, value_key="none"),
        "wrong dtype": ragged(tf.float32),
        "sparse": tf.io.SparseFeature("rows", "words", tf.int64, 10),
        "fixed": tf.io.FixedLenFeature([], tf.int64),
    }
    records = _records(tf)
    answers = {}
    for label, feature in wanted.items():
        features = {"words": feature}
        for number, record in enumerate(records):
            answers[f"{label}, record {number}"] = ask(
                tf.io.parse_single_sequence_example, record, None, features
            )
        answers[f"{label}, batch"] = ask(tf.io.parse_sequence_example, records, None, features)
    return answers


def feature_lists_in_a_map(tf, ask):
    def parsed(record):
        features = {"words": tf.io.RaggedFeature(tf.int64)}
        return tf.io.parse_single_sequence_example(record, None, features)[1]["words"]

    dataset = tf.data.Dataset.from_tensor_slices(_records(tf)).map(parsed)
    return {
        "spec": dataset.element_spec,
        "elements": list(dataset),
        "batch": list(dataset.batch(2)),
    }


def python_results(tf, ask):
    def rows(x):
        return tf.ragged.constant([[1], [2, 3]])

    def places(x):
        return tf.SparseTensor([[0]], [int(x)], [2])

    ragged = tf.RaggedTensorSpec([None, None], tf.int32)
    cases = {
        "ragged": (rows, ragged),
        "sparse": (places, tf.SparseTensorSpec([2], tf.int32)),
        "a list": (lambda x: [rows(x), x], [ragged, tf.int64]),
        "wrong dtype": (lambda x: tf.ragged.constant([[1.0]]), ragged),
        "wrong shape": (rows, tf.RaggedTensorSpec([3, None], tf.int32)),
        "dense": (lambda x: [[1, 2]], ragged),
        "none": (lambda x: None, ragged),
    }

    def mapped(function, declared):
        return tf.data.Dataset.range(3).map(lambda x: tf.py_function(function, [x], declared))

    return {
        "spec": mapped(rows, ragged).element_spec,
        **{f"{label} in a map": ask(lambda c=c: list(mapped(*c))) for label, c in cases.items()},
        **{
            f"{label}, batched": ask(lambda c=c: list(mapped(*c).batch(2)))
            for label, c in cases.items()
        },
        "ragged alone": ask(tf.py_function, rows, [3], ragged),
        "numpy_function": ask(tf.numpy_function, rows, [3], ragged),
    }


def batches_of_one(tf, ask):
    """The inner axes of a ragged batch stay ragged, if all its rows happen to have one length."""
    squares = tf.data.Dataset.range(1, 5).map(lambda x: tf.fill([x, x], 1.0))
    return {
        "squares": list(squares.ragged_batch(3)),
        "shapes": [x.shape for x in squares.ragged_batch(3)],
    }
