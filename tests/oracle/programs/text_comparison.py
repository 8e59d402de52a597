"""Text that is compared: a str is its UTF-8 bytes."""

import numpy as np

_WORDS = ["cat", "dog", "Hündin", "日本", "a\0b", ""]

_OTHERS = {
    "str": "cat",
    "bytes": b"cat",
    "a str that is not ASCII": "Hündin",
    "a str of wide characters": "日本",
    "a str with a zero": "a\0b",
    "an empty str": "",
    "NumPy's str": np.str_("cat"),
    "NumPy's bytes": np.bytes_(b"cat"),
    "a list of one": ["cat"],
    "a list": ["cat", "Hündin", b"x"],
    "a tuple": ("cat", "dog"),
    "a nested list": [["cat"], ["dog"]],
    "an empty list": [],
    "an array of str": np.array(["cat", "Hündin", "x"]),
    "an array of bytes": np.array([b"cat", b"dog"]),
    "an array of objects": np.array(["cat", b"dog", "x"], object),
    "None": None,
    "an int": 3,
    "a float": 3.5,
    "a bool": True,
    "a list of numbers": [1, 2],
    "an array of numbers": np.arange(2),
    "half of a surrogate pair": "\udc80",
}


def operators(tf, ask):
    """Every kind of operand, on both sides, eagerly and in a map."""
    words = tf.data.Dataset.from_tensor_slices(_WORDS)
    word = tf.constant("cat")
    answers = {}
    for label, other in _OTHERS.items():
        answers |= {
            f"{label}, eager ==": ask(lambda other=other: word == other),
            f"{label}, eager !=": ask(lambda other=other: word != other),
            f"{label}, eager, reversed": ask(lambda other=other: other == word),
            f"{label}, map ==": ask(_all, words.map, lambda t, other=other: t == other),
            f"{label}, map !=": ask(_all, words.map, lambda t, other=other: t != other),
            f"{label}, map, reversed": ask(_all, words.map, lambda t, other=other: other == t),
        }
    return answers


def shapes(tf, ask):
    """Several texts, against one or several."""
    pair = tf.data.Dataset.from_tensors(["cat", "dog"])
    batches = tf.data.Dataset.from_tensor_slices(["cat", "dog", "x"]).batch(2)
    ragged = tf.data.Dataset.from_generator(
        lambda: iter([["cat"], ["dog", "cat"], []]),
        output_signature=tf.TensorSpec([None], tf.string),
    )
    others = {
        "one text": "cat",
        "as many": ["dog", "dog"],
        "one in a list": ["cat"],
        "a column": [["cat"], ["dog"]],
        "more than there are": ["cat", "dog", "x"],
    }
    answers = {}
    for label, other in others.items():
        both = tf.constant(["cat", "dog"])
        answers |= {
            f"{label}, eager ==": ask(lambda both=both, other=other: both == other),
            f"{label}, eager !=": ask(lambda both=both, other=other: both != other),
            f"{label}, map ==": ask(_all, pair.map, lambda t, other=other: t == other),
            f"{label}, map !=": ask(_all, pair.map, lambda t, other=other: t != other),
        }
    for label in ("one text", "one in a list"):
        other = others[label]
        answers[f"{label}, batches"] = ask(_all, batches.map, lambda t, other=other: t == other)
        answers[f"{label}, ragged"] = ask(_all, ragged.map, lambda t, other=other: t == other)
    both = tf.constant(["cat", "dog"])
    answers |= {
        "in": ask(lambda: "cat" in both),
        "not in": ask(lambda: "bird" not in both),
        "an item": ask(lambda: bool(both[0] == "cat")),
        "items": ask(lambda: [bool(text == "dog") for text in both]),
        "in a list": ask(lambda: both[0] in ["bird", "cat"]),
        "those that are equal": ask(lambda: both[both == "dog"]),
        "numpy() is Python's bytes": ask(lambda: both[0].numpy() == "cat"),
    }
    return answers


def functions(tf, ask):
    words = tf.data.Dataset.from_tensor_slices(["cat", "dog", "cat"])
    pairs = tf.data.Dataset.from_tensor_slices({"word": ["cat", "dog"], "n": [1, 2]})
    twice = tf.data.Dataset.from_tensor_slices((["cat", "dog"], ["cat", "x"]))
    zero = np.int32(0)
    return {
        "filter": ask(_all, words.filter, lambda t: t == "cat"),
        "filter, !=": ask(_all, words.filter, lambda t: t != "cat"),
        "filter, not": ask(_all, words.filter, lambda t: not tf.equal(t, "cat")),
        "filter, or": ask(_all, words.filter, lambda t: t == "cat" or t == "dog"),  # noqa: PLR1714
        "filter, in a dict": ask(_all, pairs.filter, lambda e: e["word"] == "dog"),
        "filter, with a number": ask(
            _all, pairs.filter, lambda e: (e["word"] == "dog") & (e["n"] > 1)
        ),
        "filter, a constant": ask(_all, words.filter, lambda t: t == tf.constant("cat")),
        "filter, equal": ask(_all, words.filter, lambda t: tf.equal(t, "cat")),
        "filter, equal, reversed": ask(_all, words.filter, lambda t: tf.equal("cat", t)),
        "filter, not_equal": ask(_all, words.filter, lambda t: tf.not_equal(t, "cat")),
        "take_while": ask(_all, words.take_while, lambda t: t == "cat"),
        "map, two texts": ask(_all, twice.map, lambda a, b: a == b),
        "map, two texts, !=": ask(_all, twice.map, lambda a, b: a != b),
        "map, equal of two texts": ask(_all, twice.map, tf.equal),
        "map, cast": ask(_all, words.map, lambda t: tf.cast(t == "cat", tf.float32)),
        "map, a branch": ask(_all, words.map, lambda t: 1 if t == "cat" else 0),
        "map, in threads": ask(_all, words.map, lambda t: t == "cat", 2),
        "map, a batch": ask(_all, words.batch(2).map, lambda t: tf.cast(t == "cat", tf.int32) * 2),
        "scan": ask(_all, words.scan, zero, lambda s, t: (s + 1, t == "cat")),
        "scan, a state of text": ask(_all, words.scan, "", lambda s, t: (t, s == "cat")),
        "flat_map": ask(_all, words.flat_map, lambda t: tf.data.Dataset.from_tensors(t == "cat")),
        "group_by_window": ask(
            _all,
            words.group_by_window,
            lambda t: tf.cast(t == "cat", tf.int64),
            lambda _, group: group.batch(2),
            2,
        ),
        "reduce": ask(words.reduce, zero, lambda s, t: s + tf.cast(t == "cat", tf.int32)),
        "numpy_function": ask(
            _all, words.map, lambda t: tf.numpy_function(lambda a: a == "cat", [t], tf.bool)
        ),
        "py_function": ask(
            _all, words.map, lambda t: tf.py_function(lambda a: a == "cat", [t], tf.bool)
        ),
        "function": ask(lambda: tf.function(lambda a: a == "cat")(tf.constant("cat"))),
        "elements": ask(lambda: [bool(t == "cat") for t in words]),
        "as_numpy_iterator": ask(lambda: [t == "cat" for t in words.as_numpy_iterator()]),
        "what is text": ask(_all, words.map, lambda t: (tf.is_tensor(t), t.dtype == tf.string)),
        "spec of a batch": ask(lambda: words.batch(2).map(lambda t: t == "cat").element_spec),
    }


def tensor_functions(tf, ask):
    return {
        "equal": ask(tf.equal, ["a", "b"], "b"),
        "not_equal": ask(tf.not_equal, ["a", "b"], "b"),
        "not_equal of numbers": ask(tf.not_equal, [1, 2], 2),
        "not_equal of floats": ask(tf.not_equal, [float("nan"), 2.0], [float("nan"), 2.0]),
        "equal of an array of str": ask(tf.equal, np.array(["a", "ü"]), ["a", "u"]),
        "not_equal of unlike shapes": ask(tf.not_equal, [1, 2], [1, 2, 3]),
        "equal of unlike shapes": ask(tf.equal, ["a", "b"], ["a", "b", "c"]),
        "equal of text and a number": ask(tf.equal, "a", 1),
        "not_equal of a number and text": ask(tf.not_equal, 1, "a"),
    }


def _all(method, *arguments):
    return list(method(*arguments))
