"""Tables that change, and tables of datasets."""

import numpy as np


def _table(tf):
    table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
    table.insert(["a", "b"], tf.constant([1, 2], tf.int64))
    return table


def _dense(tf):
    table = tf.lookup.experimental.DenseHashTable(
        tf.string, tf.int64, -1, empty_key="", deleted_key="$"
    )
    table.insert(["a", "b"], tf.constant([1, 2], tf.int64))
    return table


def _sorted(pair):
    keys, values = (np.asarray(part.numpy()) for part in pair)
    order = np.argsort(keys)
    return [keys[order], values[order]]


def changes(tf, ask):
    table, vectors = (
        _table(tf),
        tf.lookup.experimental.MutableHashTable(tf.int64, tf.float32, [0.0, 0.0]),
    )

    def overwritten():
        own = _table(tf)
        own.insert(tf.constant(["b", "c"]), tf.constant([7, 8], tf.int64))
        return [own.lookup(tf.constant(["a", "b", "c"])), own.size()]

    def removed():
        own = _table(tf)
        own.remove(tf.constant(["a", "q"]))
        return _sorted(own.export())

    def of_vectors():
        vectors.insert(tf.constant([1, 2], tf.int64), [[1.0, 2.0], [3.0, 4.0]])
        return [vectors.lookup(tf.constant([[2, 9]], tf.int64)), vectors.size()]

    def mapped():
        own = _table(tf)
        words = tf.data.Dataset.from_tensor_slices(["b", "z"]).map(own.lookup)
        first = [int(x) for x in words]
        own.insert(["z"], tf.constant([4], tf.int64))
        return [first, [int(x) for x in words]]

    def compiled():
        own = _table(tf)
        find = tf.function(lambda: own.lookup(tf.constant(["a", "z"])))
        first = find()
        own.insert(["z"], tf.constant([4], tf.int64))
        return [first, find()]

    return {
        "lookup": ask(table.lookup, tf.constant(["a", "z"])),
        "lookup a list": ask(table.lookup, ["a", "z"]),
        "lookup a matrix": ask(table.lookup, tf.constant([["a"], ["z"]])),
        "item": ask(lambda: table[tf.constant(["b"])]),
        "size": table.size(),
        "export": _sorted(table.export()),
        "dtypes": [table.key_dtype, table.value_dtype],
        "overwritten": ask(overwritten),
        "removed": ask(removed),
        "defaults of each": ask(
            table.lookup, tf.constant(["z", "b"]), tf.constant([7, 8], tf.int64)
        ),
        "vectors": ask(of_vectors),
        "mapped": ask(mapped),
        "compiled": ask(compiled),
        "insert numbers": ask(table.insert, [1], [5]),
        "insert too few": ask(table.insert, ["c", "d"], [5]),
        "lookup numbers": ask(table.lookup, tf.constant([1])),
    }


def dense(tf, ask):
    table = _dense(tf)

    def removed():
        own = _dense(tf)
        own.remove(tf.constant(["a"]))
        own.erase(tf.constant(["q"]))
        return own.size()

    return {
        "lookup": ask(table.lookup, tf.constant(["a", "z"])),
        "size": table.size(),
        "removed": ask(removed),
        "the empty key": ask(table.lookup, tf.constant([""])),
        "insert the empty key": ask(table.insert, [""], tf.constant([1], tf.int64)),
        "insert the deleted key": ask(table.insert, ["$"], tf.constant([1], tf.int64)),
        "one key for both": ask(
            tf.lookup.experimental.DenseHashTable, tf.string, tf.int64, -1, "a", "a"
        ),
    }


def of_datasets(tf, ask):
    make, number = (
        tf.data.experimental.table_from_dataset,
        tf.data.experimental.index_table_from_dataset,
    )
    pairs = tf.data.Dataset.from_tensor_slices((["a", "b"], tf.constant([5, 6], tf.int64)))
    words = tf.data.Dataset.from_tensor_slices(["x", "y"])
    ids = tf.data.Dataset.from_tensor_slices(tf.constant([10, 20], tf.int64))
    initializer = tf.data.experimental.DatasetInitializer(pairs)
    return {
        "pairs": ask(lambda: make(pairs, default_value=-1).lookup(tf.constant(["b", "q"]))),
        "buckets": ask(lambda: make(pairs, num_oov_buckets=3).lookup(tf.constant(["b", "q"]))),
        "the first": ask(lambda: make(pairs, vocab_size=1, default_value=-1).size()),
        "no pairs": ask(make, tf.data.Dataset.range(3)),
        "three parts": ask(make, tf.data.Dataset.zip(ids, ids, ids)),
        "values with axes": ask(make, tf.data.Dataset.zip(ids, ids.batch(2))),
        "fewer pairs": ask(lambda: make(pairs, vocab_size=3, default_value=-1).size()),
        "another key_dtype": ask(
            lambda: make(pairs, key_dtype=tf.int64, default_value=-1).lookup(
                tf.constant(["b", "q"])
            )
        ),
        "another key_dtype, buckets": ask(make, pairs, num_oov_buckets=3, key_dtype=tf.int64),
        "a key_dtype of floats": ask(make, pairs, key_dtype=tf.float32),
        "values of text, no default": ask(make, tf.data.Dataset.zip(words, words)),
        "fewer words": ask(lambda: number(words, vocab_size=3).size()),
        "numbered, another key_dtype": ask(
            lambda: number(words, key_dtype=tf.int64).lookup(tf.constant(["y", "q"]))
        ),
        "numbered ids, no key_dtype": ask(
            lambda: number(ids).lookup(tf.constant([20, 30], tf.int64))
        ),
        "too few buckets": ask(make, pairs, num_oov_buckets=-1),
        "numbered": ask(lambda: number(words).lookup(tf.constant(["y", "q"]))),
        "numbered, buckets": ask(
            lambda: number(words, num_oov_buckets=2).lookup(tf.constant(["y", "q"]))
        ),
        "numbered, the first": ask(
            lambda: number(words, vocab_size=1).lookup(tf.constant(["y", "x"]))
        ),
        "numbered ids": ask(
            lambda: number(ids, key_dtype=tf.int64).lookup(tf.constant([20, 1], tf.int64))
        ),
        "initializer": ask(
            lambda: tf.lookup.StaticHashTable(initializer, -1).lookup(tf.constant(["a", "c"]))
        ),
        "its dtypes": [initializer.key_dtype, initializer.value_dtype],
    }
