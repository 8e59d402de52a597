"""Datasets of `tf.data.experimental` that are composed of others."""

# pyright: basic

import os
import sqlite3
import tempfile

import numpy as np


def _values(tf, dataset):
    return [tf.nest.map_structure(np.asarray, element) for element in dataset]


def lists(tf, ask):
    from_list = tf.data.experimental.from_list
    lists = {
        "numbers": [1, 2, 3],
        "dicts": [{"a": 1, "b": [1.0, 2.0]}, {"a": 2, "b": [3.0, 4.0]}],
        "tuples": [(1, "a"), (2, "b")],
        "other dtypes": [1, 2.5],
        "other structures": [(1, 2), 3],
        "empty": [],
    }
    found = {label: ask(lambda x=x: _values(tf, from_list(x))) for label, x in lists.items()}
    return {
        **found,
        "cardinality": ask(lambda: int(from_list([1, 2]).cardinality())),
        "spec": ask(lambda: str(from_list([1, 2]).element_spec.dtype.name)),
    }


def grouped(tf, ask):
    experimental = tf.data.experimental
    total = experimental.Reducer(
        lambda key: np.int64(0), lambda state, x: state + x, lambda state: state
    )
    mean = experimental.Reducer(
        lambda key: (key, np.int64(0)),
        lambda state, x: (state[0], state[1] + 1),
        lambda key, count: (key, count),
    )
    data = tf.data.Dataset.from_tensor_slices(np.array([5, 3, 4, 5, 9, 2]))
    return {
        "sums": ask(
            lambda: _values(tf, data.apply(experimental.group_by_reducer(lambda x: x % 3, total)))
        ),
        "pairs": ask(
            lambda: _values(tf, data.apply(experimental.group_by_reducer(lambda x: -x % 2, mean)))
        ),
        "nothing": ask(
            lambda: _values(
                tf, data.take(0).apply(experimental.group_by_reducer(lambda x: x, total))
            )
        ),
    }


def padded(tf, ask):
    pad = tf.data.experimental.pad_to_cardinality
    data = tf.data.Dataset.from_tensor_slices({"a": [1, 2], "b": ["x", "y"]})
    return {
        "to 4": ask(lambda: _values(tf, data.apply(pad(4)))),
        "to 2": ask(lambda: _values(tf, data.apply(pad(2)))),
        "another key": ask(lambda: _values(tf, data.apply(pad(3, mask_key="real")))),
        "fewer": ask(lambda: _values(tf, data.apply(pad(1)))),
        "a key that is there": ask(lambda: _values(tf, data.apply(pad(3, mask_key="a")))),
        "no dicts": ask(lambda: _values(tf, tf.data.Dataset.range(2).apply(pad(3)))),
        "unknown": ask(lambda: _values(tf, data.filter(lambda x: True).apply(pad(3)))),
    }


def queries(tf, ask):
    sql = tf.data.experimental.SqlDataset
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a.db")
        database = sqlite3.connect(path)
        database.execute("CREATE TABLE t (a INTEGER, b TEXT, c REAL)")
        database.executemany(
            "INSERT INTO t VALUES (?, ?, ?)", [(1, "x", 0.5), (2, "é", 1.5), (3, None, None)]
        )
        database.commit()
        database.close()
        types = (tf.int64, tf.string, tf.float64)
        every = "SELECT a, b, c FROM t ORDER BY a"
        return {
            "rows": ask(lambda: _values(tf, sql("sqlite", path, every, types))),
            "one column": ask(
                lambda: _values(tf, sql("sqlite", path, "SELECT a FROM t WHERE a > 1", (tf.int32,)))
            ),
            "none": ask(
                lambda: _values(tf, sql("sqlite", path, "SELECT a FROM t WHERE a > 9", (tf.int32,)))
            ),
            "other columns": ask(lambda: _values(tf, sql("sqlite", path, every, (tf.int64,)))),
            "another driver": ask(lambda: _values(tf, sql("mysql", path, every, types))),
            "no query": ask(lambda: _values(tf, sql("sqlite", path, "hello", types))),
            "nothing selected": ask(lambda: _values(tf, sql("sqlite", path, "", (tf.int64,)))),
        }


def values_of_another_type_in_sql(tf, ask):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a.db")

        def selected(column, dtype):
            query = f"SELECT {column} FROM t"
            return _values(tf, tf.data.experimental.SqlDataset("sqlite", path, query, (dtype,)))

        database = sqlite3.connect(path)
        database.execute("CREATE TABLE t (a INTEGER, b TEXT, c REAL)")
        rows = [(1, "x", 0.5), (-7, "12 apples", -3.9), (99999999999, "", 2e20), (0, "1e3", 0.1)]
        database.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
        database.commit()
        database.close()
        return {
            f"{column} as {name}": ask(selected, column, getattr(tf, name))
            for column in "abc"
            for name in ("string", "int64", "int32", "int8", "uint16", "float64", "bool")
        }


def features(tf, ask):
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "a.tfrecord")
        with tf.io.TFRecordWriter(path) as writer:
            for number in range(5):
                values = tf.train.Int64List(value=[number])
                feature = {"a": tf.train.Feature(int64_list=values)}
                feature["y"] = tf.train.Feature(int64_list=tf.train.Int64List(value=[number * 10]))
                example = tf.train.Example(features=tf.train.Features(feature=feature))
                writer.write(example.SerializeToString())
        wanted = {key: tf.io.FixedLenFeature([], tf.int64) for key in ("a", "y")}
        make = tf.data.experimental.make_batched_features_dataset

        def read(**how):
            return _values(tf, make(path, 2, wanted, shuffle=False, **how).take(4))

        parse = tf.data.experimental.parse_example_dataset(wanted)
        records = tf.data.TFRecordDataset(path).batch(3)
        return {
            "once": ask(lambda: read(num_epochs=1)),
            "twice": ask(lambda: read(num_epochs=2)),
            "for ever": ask(read),
            "labels": ask(lambda: read(num_epochs=1, label_key="y")),
            "whole batches": ask(lambda: read(num_epochs=1, drop_final_batch=True)),
            "unknown label": ask(lambda: read(label_key="z")),
            "shuffled": ask(
                lambda: sorted(
                    int(x["a"][0]) for x in _values(tf, make(path, 1, wanted, num_epochs=1))
                )
            ),
            "no files": ask(lambda: make(os.path.join(folder, "no*"), 2, wanted)),
            "parsed": ask(lambda: _values(tf, records.apply(parse))),
        }
