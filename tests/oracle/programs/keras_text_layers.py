"""Keras's layers for text and categories: their vocabularies, ids and encodings, and their results in `Dataset.map`."""

import os
import tempfile
from typing import Any

import numpy as np

_TEXTS = [
    "The cat, sat!",
    "the dog",
    "a Cat ran\taway  now",
    "",
    "Über-Käse; “quoted” text_with_marks",
]


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if hasattr(value, "dense_shape"):
        return [_plain(part) for part in (value.indices, value.values, value.dense_shape)]
    if hasattr(value, "flat_values"):
        return [_plain(value.flat_values)[0], value.to_list()]
    array = np.asarray(value)
    return [str(array.dtype), _rounded(array.tolist())]


def _rounded(value: Any) -> Any:
    if isinstance(value, list):
        return [_rounded(each) for each in value]
    return round(value, 4) if isinstance(value, float) else value


def _vocabulary(layer: Any) -> list[Any]:
    return [str(word) if isinstance(word, str) else int(word) for word in layer.get_vocabulary()]


def vectorized_text(tf: Any, ask: Any) -> dict[str, Any]:
    data = tf.data.Dataset.from_tensor_slices(_TEXTS)
    made = tf.keras.layers.TextVectorization

    def told(**options: Any) -> Any:
        def tell() -> Any:
            layer = made(**options)
            layer.adapt(data.batch(2))
            mapped = data.batch(3).map(layer)
            return [
                _vocabulary(layer),
                int(layer.vocabulary_size()),
                _plain(layer(["the cat flies", "now now"])),
                _plain(layer("the cat flies")),
                _plain(layer([["a cat"], ["dog"]])),
                _plain(list(mapped)),
                None if options.get("sparse") else repr(mapped.element_spec),
                _plain([layer(text) for text in data.take(2)]),
                _plain(list(data.take(2).map(layer))),
            ]

        return ask(tell)

    def upper(text: Any) -> Any:
        return tf.strings.upper(text)

    def by_a(text: Any) -> Any:
        return tf.strings.split(text, "a")

    unsplit = made(split=None, output_sequence_length=2, vocabulary=["a", "b"])
    return {
        "the defaults": told(),
        "a length": told(output_sequence_length=4),
        "a small vocabulary": told(max_tokens=6, output_sequence_length=3),
        "multi hot": told(output_mode="multi_hot"),
        "padded to the largest vocabulary": told(
            output_mode="multi_hot", max_tokens=40, pad_to_max_tokens=True
        ),
        "counts": told(output_mode="count", max_tokens=8),
        "tf-idf": told(output_mode="tf_idf"),
        "lower": told(standardize="lower"),
        "without punctuation": told(standardize="strip_punctuation"),
        "as they are": told(standardize=None),
        "by a function": told(standardize=upper, split=by_a),
        "characters": told(split="character", output_sequence_length=5),
        "pairs": told(ngrams=2),
        "some n-grams": told(ngrams=(1, 3), output_mode="count"),
        "ragged": told(ragged=True),
        "sparse": told(output_mode="multi_hot", sparse=True),
        "no split": ask(lambda: _plain(unsplit([["a"], ["b"], ["a"]]))),
        "no split, cut": ask(lambda: _plain(unsplit([["a", "b", "c"]]))),
        "a wrong mode": told(output_mode="binary?"),
        "a length with counts": told(output_mode="count", output_sequence_length=2),
    }


def given_vocabularies(tf: Any, ask: Any) -> dict[str, Any]:
    layers, words = tf.keras.layers, ["earth", "wind", "and", "fire"]
    path = os.path.join(tempfile.mkdtemp(), "words.txt")
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(words) + "\n")

    def told(layer: Any, inputs: Any) -> Any:
        return [_vocabulary(layer), _plain(layer(inputs))]

    def vector(**options: Any) -> Any:
        return ask(lambda: told(layers.TextVectorization(**options), ["fire, wind!", "rain"]))

    def string(inputs: Any = ("fire", "rain", "", "snow"), **options: Any) -> Any:
        return ask(lambda: told(layers.StringLookup(**options), list(inputs)))

    def integer(inputs: Any = (42, 12, 7, 0, -1), **options: Any) -> Any:
        return ask(lambda: told(layers.IntegerLookup(**options), list(inputs)))

    def again() -> Any:
        layer = layers.StringLookup()
        layer.adapt(["a", "b", "b"])
        first = _vocabulary(layer)
        layer.adapt(["c"])
        second = _vocabulary(layer)
        layer.set_vocabulary(["x", "y"])
        return [first, second, _vocabulary(layer), layer.get_config()["vocabulary"]]

    return {
        "texts": vector(vocabulary=words),
        "texts, from a file": vector(vocabulary=path),
        "texts, with weights": vector(
            vocabulary=words, idf_weights=[0.1, 0.2, 0.3, 0.4], output_mode="tf_idf"
        ),
        "words": string(vocabulary=words),
        "words, from a file": string(vocabulary=path),
        "words with a mask": string(vocabulary=words, mask_token=""),
        "several unknown": string(vocabulary=words, num_oov_indices=3),
        "several unknown, with salt": string(vocabulary=words, num_oov_indices=3, salt=7),
        "none unknown": string(vocabulary=words, num_oov_indices=0),
        "none unknown, all known": string(["and", "fire"], vocabulary=words, num_oov_indices=0),
        "one hot": string(vocabulary=words, output_mode="one_hot"),
        "one hot, one column": string([["and"], ["x"]], vocabulary=words, output_mode="one_hot"),
        "multi hot": string(
            [["and", "fire"], ["x", "and"]], vocabulary=words, output_mode="multi_hot"
        ),
        "multi hot, one row": string(vocabulary=words, output_mode="multi_hot"),
        "multi hot with a mask": string(vocabulary=words, output_mode="multi_hot", mask_token=""),
        "counts": string([["and", "and"], ["x", "and"]], vocabulary=words, output_mode="count"),
        "sparse counts": string(
            [["and", "and"]], vocabulary=words, output_mode="count", sparse=True
        ),
        "inverted": string([1, 4, 0, 99], vocabulary=words, invert=True),
        "inverted with a mask": string([0, 1, 2], vocabulary=words, invert=True, mask_token=""),
        "with special tokens": string(vocabulary=["[UNK]", *words]),
        "repeated words": string(vocabulary=["a", "a"]),
        "an empty vocabulary": string(vocabulary=[]),
        "too many words": string(vocabulary=words, max_tokens=3),
        "integers": integer(vocabulary=[42, 12]),
        "integers with a mask": integer(vocabulary=[42, 12], mask_token=0),
        "several unknown integers": integer(vocabulary=[42, 12], num_oov_indices=2),
        "unknown integers by hash": integer(
            vocabulary=[42, 12], num_oov_indices=3, oov_method="farmhash"
        ),
        "integers, multi hot": integer(
            [[12, 12], [5, 42]], vocabulary=[42, 12], output_mode="multi_hot"
        ),
        "integers, inverted": integer([0, 1, 2], vocabulary=[42, 12], invert=True),
        "large integers": integer([2**40, 1], vocabulary=[2**40, 2**41]),
        "adapted again": ask(again),
        "no vocabulary": ask(lambda: layers.StringLookup()(["a"])),
        "the vocabulary of none": ask(lambda: _vocabulary(layers.TextVectorization())),
        "adapted with a vocabulary": ask(
            lambda: layers.StringLookup(vocabulary=words).adapt(["a"])
        ),
    }


def adapted_lookups(tf: Any, ask: Any) -> dict[str, Any]:
    layers = tf.keras.layers
    words = tf.data.Dataset.from_tensor_slices([["a", "b"], ["b", "c"], ["", "b"], ["a", "ä"]])
    numbers = tf.data.Dataset.from_tensor_slices(np.array([[5, 9], [9, 2**35], [0, 9]]))

    def told(layer: Any, data: Any, **options: Any) -> Any:
        def tell() -> Any:
            layer.adapt(data.batch(2), **options)
            return [
                _vocabulary(layer),
                _plain(list(data.map(layer))),
                _plain(list(data.batch(3).map(layer))),
            ]

        return ask(tell)

    return {
        "words": told(layers.StringLookup(), words),
        "words with a mask": told(layers.StringLookup(mask_token="", max_tokens=4), words),
        "some steps": told(layers.StringLookup(), words, steps=1),
        "multi hot": told(layers.StringLookup(output_mode="multi_hot"), words),
        "tf-idf": told(layers.StringLookup(output_mode="tf_idf"), words),
        "numbers": told(layers.IntegerLookup(), numbers),
        "numbers with a mask": told(
            layers.IntegerLookup(mask_token=0, output_mode="count"), numbers
        ),
    }


def hashes(tf: Any, ask: Any) -> dict[str, Any]:
    layers = tf.keras.layers
    words, numbers = ["A", "B", "", "long text", "ä"], [1, 2, 300, -4, 0]

    def told(inputs: Any, *args: Any, **options: Any) -> Any:
        return ask(lambda: _plain(layers.Hashing(*args, **options)(inputs)))

    def crossed(inputs: Any, *args: Any, **options: Any) -> Any:
        return ask(lambda: _plain(layers.HashedCrossing(*args, **options)(inputs)))

    data = tf.data.Dataset.from_tensor_slices((words, numbers))
    cross = layers.HashedCrossing(6)
    return {
        "words": told(words, 7),
        "one word": told("A", 7),
        "rows of words": told([[word] for word in words], 7),
        "numbers": told(numbers, 7),
        "large numbers": told(np.array([2**40, -(2**50)]), 11),
        "floats": told(np.array([1.7, 2.2], np.float32), 7),
        "a mask": told(words, 7, mask_value=""),
        "a mask of numbers": told(numbers, 7, mask_value=0),
        "salt": told(words, 7, salt=133),
        "two salts": told(words, 7, salt=[133, 137]),
        "one hot": told(words[:2], 3, output_mode="one_hot"),
        "one hot, one column": told([["A"], ["B"]], 3, output_mode="one_hot"),
        "multi hot": told([["A", "B"], ["B", "B"]], 3, output_mode="multi_hot"),
        "count": told([["A", "B"], ["B", "B"]], 3, output_mode="count"),
        "crossed": crossed((tf.constant(words), tf.constant(numbers)), 6),
        "crossed columns": crossed((tf.constant([["A"]]), tf.constant([["B"]])), 6),
        "crossed scalars": crossed((tf.constant("A"), tf.constant(3)), 6, output_mode="one_hot"),
        "crossed, one hot": crossed(
            (tf.constant(words), tf.constant(words)), 6, output_mode="one_hot"
        ),
        "one input is not enough": crossed((tf.constant(words),), 6),
        "in a map": ask(lambda: _plain(list(data.map(lambda a, b: cross((a, b)))))),
        "in a map of batches": ask(
            lambda: _plain(list(data.batch(3).map(lambda a, b: cross((a, b)))))
        ),
        "hashed in a map": ask(lambda: _plain(list(data.map(lambda a, b: layers.Hashing(5)(a))))),
    }


def numbers_in_maps(tf: Any, ask: Any) -> dict[str, Any]:
    """Layers of numbers, which run on JAX."""
    layers = tf.keras.layers
    rows = np.arange(12, dtype=np.float32).reshape(6, 2)
    data = tf.data.Dataset.from_tensor_slices(rows)
    ids = tf.data.Dataset.from_tensor_slices(np.array([[0, 1], [3, 3]], np.int32))

    def told(layer: Any, data: Any, adapt: Any = None) -> Any:
        def tell() -> Any:
            if adapt is not None:
                layer.adapt(adapt)
            return [_rounded(np.asarray(row).tolist()) for row in data.map(layer)]

        return ask(tell)

    return {
        "normalized": told(layers.Normalization(), data, data.batch(4)),
        "normalized back": told(layers.Normalization(invert=True), data, data.batch(4)),
        "normalized by one number": told(layers.Normalization(axis=None), data.batch(2), rows),
        "in bins": told(layers.Discretization(bin_boundaries=[2.0, 5.0]), data),
        "in bins that are found": told(layers.Discretization(num_bins=3), data, data.batch(4)),
        "in bins, one hot": told(
            layers.Discretization(bin_boundaries=[2.0, 5.0], output_mode="one_hot"), data
        ),
        "categories": told(layers.CategoryEncoding(4, output_mode="multi_hot"), ids),
        "categories, one hot": told(layers.CategoryEncoding(4, output_mode="one_hot"), ids),
        "counted categories": told(layers.CategoryEncoding(4, output_mode="count"), ids.batch(2)),
        "rescaled": told(layers.Rescaling(0.5, offset=-1), data.batch(3)),
    }
