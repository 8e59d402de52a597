"""tf.lookup: tables from tensors and from files."""

import tempfile
from pathlib import Path

import numpy as np


def tables(tf, ask):
    """StaticHashTable with keys and values of every dtype, eagerly and in maps."""
    start, table_of = tf.lookup.KeyValueTensorInitializer, tf.lookup.StaticHashTable
    words = table_of(start(["a", "b", "c"], [0, 1, 2]), -1)
    few, many = tf.data.Dataset.from_tensor_slices(["a b", "z"]), np.array([2, 3], np.int64)
    ids = tf.constant([[2], [9]])
    return {
        "a vector": ask(lambda: words.lookup(tf.constant(["a", "z", "c"]))),
        "a matrix": ask(lambda: words.lookup(tf.constant([["a"], ["z"]]))),
        "a scalar": ask(lambda: words[tf.constant("b")]),
        "ragged": ask(lambda: words.lookup(tf.ragged.constant([["a", "b"], ["z"]]))),
        "size": ask(words.size),
        "default": ask(lambda: words.default_value),
        "dtypes": ask(lambda: (words.key_dtype, words.value_dtype)),
        "keys of another dtype": ask(lambda: words.lookup(tf.constant([1]))),
        "floats": ask(lambda: table_of(start(["a"], [1.5]), 0.5).lookup(tf.constant(["a", "b"]))),
        "texts": ask(lambda: table_of(start([1, 2], ["x", "y"]), "?").lookup(ids)),
        "int64": ask(lambda: table_of(start(many, many * 10), -1).lookup(tf.constant(many + 1))),
        "dtypes that are given": ask(
            lambda: table_of(start(["a"], [1], tf.string, tf.int64), -1).lookup(tf.constant("a"))
        ),
        "a key twice": ask(lambda: table_of(start(["a", "a"], [1, 1]), 0).size()),
        "a key with two values": ask(lambda: table_of(start(["a", "a"], [1, 2]), 0)),
        "too few values": ask(lambda: table_of(start(["a", "b"], [1]), 0)),
        "a default of another dtype": ask(lambda: table_of(start(["a"], [1]), "x")),
        "in a map": ask(_all, few, words.lookup),
        "of pieces": ask(_all, few, lambda x: words.lookup(tf.strings.split(x))),
        "computed with": ask(_all, few, lambda x: words.lookup(tf.strings.split(x)) * 2 + 1),
        "of batches": ask(_all, few.batch(2), words.lookup),
        "of numbers in a map": ask(
            _all, tf.data.Dataset.range(4), table_of(start(many, many * 10), -1).lookup
        ),
        "spec": ask(lambda: few.map(words.lookup).element_spec),
    }


def vocabularies(tf, ask):
    """StaticVocabularyTable: words without an id are hashed."""
    start, table_of = tf.lookup.KeyValueTensorInitializer, tf.lookup.StaticVocabularyTable
    two = np.array([0, 1], np.int64)
    words = table_of(start(["a", "b"], two), 3)
    numbers = start(np.array([10, 20], np.int64), two)
    several = tf.constant(["a", "b", "zebra", "yak", "x", ""])
    return {
        "words": ask(lambda: words.lookup(several)),
        "size": ask(words.size),
        "in a map": ask(_all, tf.data.Dataset.from_tensor_slices(several), words.lookup),
        "numbers": ask(
            lambda: table_of(numbers, 2).lookup(tf.constant(np.array([10, 99, 100], np.int64)))
        ),
        "another dtype": ask(
            lambda: table_of(numbers, 2, lookup_key_dtype=tf.int32).lookup(tf.constant([10, 99]))
        ),
        "no words": ask(lambda: table_of(None, 5).lookup(several)),
        "ids with a gap": ask(
            lambda: table_of(start(["a", "b"], np.array([0, 5], np.int64)), 2).lookup(several)
        ),
        "ids of int32": ask(lambda: table_of(start(["a"], [0]), 2)),
        "no buckets": ask(lambda: table_of(start(["a", "b"], two), 0)),
    }


def files(tf, ask):
    """TextFileInitializer: columns, lines and line numbers."""
    index = tf.lookup.TextFileIndex
    lines, whole = index.LINE_NUMBER, index.WHOLE_LINE

    def found(keys, *columns, content=b"emerson 10\nlake 20\npalmer 30\n", default=-1, **options):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "words.txt"
            path.write_bytes(content)
            first = tf.lookup.TextFileInitializer(str(path), *columns, delimiter=" ", **options)
            table = tf.lookup.StaticHashTable(first, default)
            return table.lookup(tf.constant(keys)), table.size()

    names = ["palmer", "lake", "x"]
    return {
        "two columns": ask(found, names, tf.string, 0, tf.int64, 1),
        "floats": ask(found, names, tf.string, 0, tf.float32, 1, default=0.5),
        "line numbers": ask(found, names, tf.string, 0, tf.int64, lines),
        "whole lines": ask(found, ["lake 20", "lake"], tf.string, whole, tf.int64, lines),
        "words by number": ask(
            found, np.array([1, 7], np.int64), tf.int64, lines, tf.string, whole, default="?"
        ),
        "an offset": ask(found, names, tf.string, 0, tf.int64, lines, value_index_offset=100),
        "the first lines": ask(found, names, tf.string, 0, tf.int64, lines, vocab_size=2),
        "too many lines": ask(found, names, tf.string, 0, tf.int64, lines, vocab_size=9),
        "no such column": ask(found, names, tf.string, 5, tf.int64, lines),
        "not a number": ask(found, names, tf.string, 1, tf.int64, 0),
        "no new line at the end": ask(
            found, ["b"], tf.string, whole, tf.int64, lines, content=b"a\nb"
        ),
        "an empty line": ask(found, [""], tf.string, whole, tf.int64, lines, content=b"a\n\nb\n"),
        "windows": ask(found, ["a"], tf.string, whole, tf.int64, lines, content=b"a\r\nb\r\n"),
        "numbers that are text": ask(found, names, tf.string, lines, tf.int64, 1),
        "an index that is too small": ask(found, names, tf.string, -5, tf.int64, 1),
        "no file": ask(
            lambda: tf.lookup.StaticHashTable(
                tf.lookup.TextFileInitializer("/nowhere.txt", tf.string, whole, tf.int64, lines), -1
            )
        ),
    }


def _all(dataset, function):
    return list(dataset.map(function))
