"""Ragged and sparse tensors as the elements of datasets."""


def sources(tf, ask):
    """What from_tensors and from_tensor_slices make of them, and every way to split and batch them."""
    dataset, answers = tf.data.Dataset, {}
    for kind, value in _values(tf).items():
        whole, rows = dataset.from_tensors(value), dataset.from_tensor_slices(value)
        datasets = {
            "whole": whole,
            "rows": rows,
            "batches": rows.batch(2),
            "full batches": rows.batch(2, drop_remainder=True),
            "a batch of one": whole.batch(2),
            "unbatched": whole.unbatch(),
            "unbatched batches": rows.batch(2).unbatch(),
            "rebatched": whole.rebatch(2),
            "mapped to itself": rows.map(lambda x: x),
            "taken": rows.take(2),
            "skipped": rows.skip(1),
            "repeated": rows.repeat(2),
            "concatenated": rows.concatenate(rows),
            "cached": rows.cache(),
            "shard": rows.shard(2, 0),
            "zipped": dataset.zip((rows, dataset.range(9))),
            "enumerated": rows.enumerate().batch(2),
            "in a dict": dataset.from_tensors({"a": value, "b": 1}),
            "flat_map": whole.flat_map(tf.data.Dataset.from_tensor_slices),
            "interleaved": whole.repeat(2).interleave(tf.data.Dataset.from_tensor_slices),
        }
        for label, made in datasets.items():
            answers[f"{label}, {kind}"] = ask(lambda made=made: list(made))
            answers[f"the spec of {label}, {kind}"] = made.element_spec
            answers[f"the size of {label}, {kind}"] = int(made.cardinality())
        answers[f"shuffled, {kind}"] = ask(lambda rows=rows: len(list(rows.shuffle(9))))
        answers[f"padded, {kind}"] = ask(lambda rows=rows: rows.padded_batch(2))
        answers[f"window, {kind}"] = ask(lambda rows=rows: rows.window(2).element_spec)
        answers[f"with dense, {kind}"] = ask(
            lambda rows=rows: rows.concatenate(dataset.range(3)).element_spec
        )
        answers[f"uneven, {kind}"] = ask(
            lambda value=value: dataset.from_tensor_slices((value, [1] * 9))
        )
        answers[f"optional, {kind}"] = iter(whole).get_next_as_optional().element_spec
        answers[f"single, {kind}"] = ask(whole.get_single_element)
    return answers


def batches(tf, ask):
    """Batches of tensors of different lengths, as ragged and sparse tensors."""
    spec = tf.TensorSpec([None], tf.int64)
    rows = tf.data.Dataset.from_generator(lambda: [[0], [1, 2], [], [3]], output_signature=spec)
    wide = tf.data.Dataset.from_generator(
        lambda: [[[1, 2]], [[3, 4], [5, 6]], []],
        output_signature=tf.TensorSpec([None, 2], tf.int32),
    )
    tall = tf.data.Dataset.from_generator(
        lambda: [[[1], [2]], [[3, 4], [5, 6]]], output_signature=tf.TensorSpec([2, None], tf.int32)
    )
    old = tf.data.experimental
    datasets = {
        "ragged": rows.ragged_batch(2),
        "short": rows.ragged_batch(3),
        "full": rows.ragged_batch(3, drop_remainder=True),
        "int32 splits": rows.ragged_batch(3, row_splits_dtype=tf.int32),
        "an older name": rows.apply(old.dense_to_ragged_batch(2)),
        "scalars": tf.data.Dataset.range(5).ragged_batch(2),
        "one shape": tf.data.Dataset.from_tensor_slices([[1, 2], [3, 4]]).ragged_batch(2),
        "wide rows": wide.ragged_batch(3),
        "tall rows": tall.ragged_batch(2),
        "in a tuple": tf.data.Dataset.zip((rows, tf.data.Dataset.range(9))).ragged_batch(3),
        "twice": rows.ragged_batch(2).batch(2),
        "uneven batches": rows.ragged_batch(3).batch(2),
        "sparse": rows.sparse_batch(3, [6]),
        "sparse, as long as the longest": rows.sparse_batch(3, [None]),
        "sparse, an older name": rows.apply(old.dense_to_sparse_batch(3, [6])),
        "sparse scalars": tf.data.Dataset.range(3).sparse_batch(2, []),
        "sparse matrices": wide.sparse_batch(2, [3, 3]),
    }
    return (
        {label: ask(lambda made=made: list(made)) for label, made in datasets.items()}
        | {f"the spec of {label}": made.element_spec for label, made in datasets.items()}
        | {
            "of unknown rank": ask(
                lambda: (
                    tf.data.Dataset.from_generator(lambda: [[1]], tf.int32)
                    .ragged_batch(2)
                    .element_spec
                )
            ),
            "too long for sparse": ask(lambda: list(rows.sparse_batch(3, [1]))),
            "sparse of another rank": ask(lambda: list(rows.sparse_batch(3, [1, 2]))),
            "sparse of a tuple": ask(
                lambda: tf.data.Dataset.zip((rows, rows)).sparse_batch(3, [6])
            ),
        }
    )


def functions(tf, ask):
    """Functions that get or return them."""
    ragged = tf.ragged.constant([[[1], [2, 3]], [], [[4]]])
    rows, whole = tf.data.Dataset.from_tensor_slices(ragged), tf.data.Dataset.from_tensors(ragged)
    flat = tf.data.Dataset.from_tensor_slices(tf.ragged.constant([[1, 2, 3], [], [4]]))
    sparse = tf.data.Dataset.from_tensor_slices(_values(tf)["sparse"])
    texts = tf.data.Dataset.from_tensor_slices(["a b", "c", "d e f"])
    numbers = tf.data.Dataset.range(1, 4)
    datasets = {
        "doubled": whole.map(lambda x: x * 2),
        "made dense": rows.batch(2).map(lambda x: x.to_tensor()),
        "made sparse": flat.batch(2).map(lambda x: x.to_sparse()),
        "rows doubled": flat.map(lambda x: x * 2),
        "lengths": rows.map(lambda x: x.row_lengths()),
        "by class": rows.map(lambda x: x.values if isinstance(x, tf.RaggedTensor) else x),
        "two parts": rows.enumerate().map(lambda i, x: (x, i + 1)),
        "filtered": rows.filter(lambda x: x.nrows() > 0),
        "rows filtered": flat.filter(lambda x: tf.shape(x)[0] > 0).batch(2),
        "split": texts.batch(2).map(tf.strings.split),
        "split into rows": texts.batch(2).map(tf.strings.split).unbatch(),
        "sparse made dense": sparse.map(tf.sparse.to_dense),
        "sparse values": sparse.map(lambda x: x.values),
        "sparse of other shapes": numbers.map(lambda n: tf.SparseTensor([[0]], [n], [n])),
        "batches of these": numbers.map(lambda n: tf.SparseTensor([[0]], [n], [n])).batch(2),
        "flat_map over rows": flat.flat_map(tf.data.Dataset.from_tensor_slices),
    }
    answers = {label: ask(lambda made=made: list(made)) for label, made in datasets.items()}
    answers |= {f"the spec of {label}": made.element_spec for label, made in datasets.items()}
    return answers | {
        "reduced": ask(lambda: flat.reduce(0, lambda total, x: total + tf.reduce_sum(x))),
        "rows that differ": ask(lambda: list(flat.map(lambda x: x).batch(2))),
    }


def generators(tf, ask):
    """from_generator with their specs."""
    values, made = _values(tf), tf.data.Dataset.from_generator
    ragged = tf.RaggedTensorSpec([None, None], tf.int32)
    return {
        "ragged": ask(lambda: list(made(lambda: [values["ragged"]], output_signature=ragged))),
        "sparse": ask(
            lambda: list(
                made(
                    lambda: [values["sparse"]],
                    output_signature=tf.SparseTensorSpec([3, 4], tf.int32),
                )
            )
        ),
        "lists": ask(lambda: list(made(lambda: [[[1, 2], [3]]], output_signature=ragged))),
        "another dtype": ask(
            lambda: list(
                made(
                    lambda: [values["ragged"]],
                    output_signature=tf.RaggedTensorSpec([None, None], tf.float32),
                )
            )
        ),
    }


def specs(tf, ask):
    """The spec of a sparse tensor, and what a spec of ragged rank 0 accepts."""
    spec, value = tf.SparseTensorSpec, _values(tf)["sparse"]
    rows = tf.RaggedTensorSpec([None], tf.int32, 0)
    known, open_ = spec([3, 4], tf.int32), spec([None, 4], tf.int32)
    return {
        "is_tensor": [ask(tf.is_tensor, each) for each in _values(tf).values()],
        "default": ask(spec),
        "shape": ask(lambda: known.shape),
        "dtype": ask(lambda: known.dtype),
        "of a value": ask(lambda: tf.type_spec_from_value(value)),
        "from_value": ask(lambda: spec.from_value(value)),
        "equal": known == spec([3, 4], tf.int32),
        "unequal": known == open_,
        "subtype": ask(lambda: known.is_subtype_of(open_)),
        "supertype": ask(lambda: open_.is_subtype_of(known)),
        "common": ask(lambda: known.most_specific_common_supertype([spec([5, 4], tf.int32)])),
        "nothing in common": ask(lambda: known.most_specific_common_supertype([spec([3, 4])])),
        "compatible": ask(lambda: open_.is_compatible_with(value)),
        "incompatible": ask(lambda: spec([3, 5], tf.int32).is_compatible_with(value)),
        "a row": ask(lambda: rows.is_compatible_with(tf.constant([1]))),
        "the spec of a row": ask(lambda: rows.is_compatible_with(tf.TensorSpec([None], tf.int32))),
        "a row of floats": ask(lambda: rows.is_compatible_with(tf.constant([1.5]))),
        "a matrix": ask(lambda: rows.is_compatible_with(tf.constant([[1]]))),
        "a tensor's": ask(lambda: tf.TensorSpec([None], tf.int32).is_compatible_with(rows)),
    }


def _values(tf):
    return {
        "ragged": tf.ragged.constant([[1, 2, 3], [], [4], [5, 6]]),
        "text": tf.ragged.constant([["a"], ["b", "c"], []]),
        "three axes": tf.ragged.constant([[[1], [2, 3]], [], [[4]]]),
        "dense rows": tf.ragged.constant([[[1, 2], [3, 4]], [[5, 6]]], ragged_rank=1),
        "one length": tf.RaggedTensor.from_uniform_row_length([1, 2, 3, 4], 2),
        "int32 splits": tf.ragged.constant([[1], [2, 3]], row_splits_dtype=tf.int32),
        "sparse": tf.SparseTensor([[0, 0], [0, 2], [2, 1]], [1, 2, 3], [3, 4]),
        "sparse text": tf.SparseTensor([[0, 1, 0], [1, 0, 2]], ["a", "b"], [2, 2, 3]),
    }
