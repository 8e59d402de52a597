"""The class of what `as_numpy_iterator` returns."""


def numpy_iterators(tf, ask):
    dataset = tf.data.Dataset.range(3).batch(2)
    kind = tf.data.NumpyIterator
    return {
        "its class": ask(lambda: isinstance(dataset.as_numpy_iterator(), kind)),
        "another iterator": ask(lambda: isinstance(iter(dataset), kind)),
        "of a dataset": ask(lambda: list(kind(dataset))),
        "of text": ask(lambda: list(kind(tf.data.Dataset.from_tensor_slices(["a", "b"])))),
        "next": ask(lambda: next(kind(dataset))),
    }
