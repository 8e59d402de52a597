"""Elements and batches as users take them apart: single values, keys of text, and lists of features."""

# pyright: basic

import numpy as np

TEXTS = np.array([[b"a", b"b"], [b"c", b"d"], [b"e", b"f"]], object)


def _each(ask, calls):
    return {label: ask(*call) for label, call in calls.items()}


def _plain(value):
    found = value.numpy()
    return type(found).__name__, np.asarray(found).tolist()


def single_values(tf, ask):
    x = np.array([[0.5, 1.5], [2.5, 3.5]], np.float32)
    dataset = tf.data.Dataset.from_tensor_slices((x, [3, 1], ["a", "b"])).batch(2)
    (batch,) = dataset
    numbers, labels, texts = batch
    calls = {
        "rows": lambda: [_plain(row) for row in numbers],
        "numbers": lambda: [_plain(number) for number in numbers[0]],
        "labels": lambda: [_plain(label) for label in labels],
        "texts": lambda: [_plain(text) for text in texts],
        "two indices": lambda: _plain(numbers[0, 1]),
        "last": lambda: _plain(labels[-1]),
        "in take": lambda: [(_plain(y[0]), _plain(t[0])) for _, y, t in dataset.take(1)],
        "sum": lambda: _plain(labels[0] + labels[1]),
        "product with a number": lambda: _plain(2 * numbers[0, 1]),
        "quotient": lambda: _plain(numbers[0, 1] / 3),
        "negative": lambda: _plain(-numbers[0, 1]),
        "equal": lambda: _plain(labels[0] == 3),
        "equal texts": lambda: [
            _plain(texts[0] == other) for other in ("a", b"b", texts[1], texts)
        ],
        "other texts": lambda: [_plain(texts[0] != other) for other in ("a", b"b", texts[1])],
        "less": lambda: _plain(labels[1] < labels[0]),
        "reduced": lambda: _plain(tf.reduce_sum(labels)),
        "int, float, bool": lambda: (int(labels[0]), float(numbers[0, 0]), bool(labels[1])),
        "index of a list": lambda: "abcd"[labels[0]],
        "range": lambda: list(range(labels[0])),
        "format": lambda: f"{numbers[0, 1]:.3f} {labels[0]:3d}",
        "shape": lambda: (labels[0].shape.as_list(), labels[0].shape.rank, labels[0].ndim),
        "list of them": lambda: tf.convert_to_tensor([labels[0], labels[1]]),
        "stacked": lambda: tf.stack([labels[0], labels[1]]),
        "iterated": lambda: list(labels[0]),
        "length": lambda: len(labels[0]),
        "length of the batch": lambda: len(labels),
    }
    return {label: ask(call) for label, call in calls.items()}


def kinds(tf, ask):
    (batch,) = tf.data.Dataset.from_tensor_slices(([1, 2], ["a", "b"])).batch(2)
    values = {
        "batch": batch[0],
        "batch of text": batch[1],
        "number": batch[0][0],
        "text": batch[1][0],
        "constant": tf.constant(0),
        "constant text": tf.constant("a"),
        "ragged": tf.ragged.constant([[1], [2, 3]]),
        "sparse": tf.sparse.from_dense([0, 1]),
        "variable": tf.Variable(1.0),
        "array": np.ones(2),
        "int": 1,
        "bytes": b"a",
        "list": [1],
    }
    found = {
        label: ask(lambda value=value: (tf.is_tensor(value), isinstance(value, tf.Tensor)))
        for label, value in values.items()
    }
    seen = {}

    def look(number, text):
        for label, value in {"number": number, "text": text, "result": number + 1}.items():
            seen[label] = tf.is_tensor(value), isinstance(value, tf.Tensor)
        return number

    list(tf.data.Dataset.from_tensor_slices(([1, 2], ["a", "b"])).map(look))
    traced = {}

    @tf.function
    def step(x):
        traced["argument"] = tf.is_tensor(x), isinstance(x, tf.Tensor)
        return x

    step(tf.constant(1))
    return found | {"in a map": ask(lambda: seen), "in a function": ask(lambda: traced)}


def keys_of_text(tf, ask):
    keys = {
        "newaxis": lambda t: t[tf.newaxis],
        "newaxis at the end": lambda t: t[..., tf.newaxis],
        "newaxis twice": lambda t: t[tf.newaxis, tf.newaxis],
        "ellipsis": lambda t: t[...],
        "None at 1": lambda t: t[:, None],
        "first": lambda t: t[0],
        "last of each": lambda t: t[..., -1],
        "first and newaxis": lambda t: t[0][tf.newaxis],
        "backwards": lambda t: t[::-1],
        "backwards inside": lambda t: t[..., ::-1],
        "every second": lambda t: t[::2],
        "without the last": lambda t: t[:-1],
        "masked": lambda t: tf.boolean_mask(t, t != b"a"),
        "mask as key": lambda t: t[t != b"c"],
    }
    answers = {}
    for value in (TEXTS[0, 0], TEXTS[:, 0], TEXTS, np.stack([TEXTS, TEXTS])):
        rank = np.ndim(value)
        allowed = list(keys)[:4] if rank == 0 else list(keys)
        for label in allowed:
            key = keys[label]
            answers[f"{label} of rank {rank}"] = ask(key, tf.constant(value))
            mapped = tf.data.Dataset.from_tensors(tf.constant(value)).map(key)
            answers[f"{label} of rank {rank} in a map"] = ask(list, mapped)
    return answers


def features_of_tensors(tf, ask):
    train = tf.train
    scalars = tf.data.Dataset.from_tensor_slices(([1.5, 2.5], [3, 4]))
    (floats, ints), _ = scalars

    def bytes_feature(value):
        if isinstance(value, type(tf.constant(0))):
            value = value.numpy()
        return list(train.BytesList(value=[value]).value)

    def parsed():
        feature = {
            "x": train.Feature(float_list=train.FloatList(value=[floats, tf.constant(2.0), 3]))
        }
        example = train.Example(features=train.Features(feature=feature))
        one = tf.data.Dataset.from_tensors(example.SerializeToString())
        spec = {"x": tf.io.FixedLenFeature([3], tf.float32)}
        return list(one.map(lambda text: tf.io.parse_example(text[tf.newaxis], spec)))

    return _each(
        ask,
        {
            "serialized tensor": (bytes_feature, tf.io.serialize_tensor(tf.constant([1, 2]))),
            "constant text": (bytes_feature, tf.constant("a")),
            "bytes": (bytes_feature, b"a"),
            "str": (bytes_feature, "a"),
            "vector of text": (bytes_feature, np.array([b"a"], object)),
            "ints": (
                lambda: list(train.Int64List(value=[ints, tf.constant(3), np.int64(4), 5]).value),
            ),
            "floats": (lambda: list(train.FloatList(value=[floats, tf.constant(2.0), 3]).value),),
            "float for an int": (lambda: train.Int64List(value=[1.5]),),
            "scalar": (lambda: train.Int64List(value=3),),
            "parsed": (parsed,),
        },
    )


def places_that_do_not_exist(tf, ask):
    matrix = tf.constant([[1, 2, 3], [4, 5, 6]])
    keys = {
        "below": (-3,),
        "above": (2,),
        "in the second axis": (0, 3),
        "behind a slice": (slice(None), 3),
        "behind an ellipsis": (..., 3),
        "before an ellipsis": (2, ...),
        "behind a new axis": (None, 2),
        "too many": (0, 0, 0),
        "the last": (-2, -3),
        "a slice": (slice(5, 9), 2),
        "around an ellipsis": (1, ..., 2),
    }
    answers = {}
    for label, key in keys.items():
        answers[label] = ask(lambda key=key: matrix[key].numpy().tolist())
        answers[f"{label} in a function"] = ask(
            lambda key=key: tf.function(lambda x: x[key])(matrix).numpy().tolist()
        )
    return answers
