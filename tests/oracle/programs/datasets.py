"""Datasets: what they are made of, what they say of themselves, what comes out."""

import collections
import dataclasses

import attr
import numpy as np

Pair = collections.namedtuple("Pair", "y x")


@attr.s(auto_attribs=True)
class Record:
    b: object
    a: object


@dataclasses.dataclass
class Plain:
    b: object
    a: object


def _facts(ask, make):
    """Answer everything there is to ask of a dataset that ends."""
    return {
        "element_spec": ask(lambda: make().element_spec),
        "cardinality": ask(lambda: int(make().cardinality())),
        "len": ask(lambda: len(make())),
        "elements": ask(lambda: list(make())),
        "as NumPy": ask(lambda: list(make().as_numpy_iterator())),
        # The spec is asked above; Python itself shows an OrderedDict in two ways.
        "repr": ask(lambda: repr(make()).partition(" element_spec=")[0]),
    }


def _all_facts(ask, datasets):
    return {
        f"{label} {fact}": answer
        for label, make in datasets.items()
        for fact, answer in _facts(ask, make).items()
    }


def range_(tf, ask):
    count = tf.data.Dataset.range
    return _all_facts(
        ask,
        {
            "5": lambda: count(5),
            "0": lambda: count(0),
            "-3": lambda: count(-3),
            "2, 5": lambda: count(2, 5),
            "5, 2": lambda: count(5, 2),
            "2, 9, 3": lambda: count(2, 9, 3),
            "2, 8, 3": lambda: count(2, 8, 3),
            "5, 0, -2": lambda: count(5, 0, -2),
            "0, 5, -1": lambda: count(0, 5, -1),
            "up to the last int64": lambda: count(2**63 - 3, 2**63 - 1),
            "int32": lambda: count(3, output_type=tf.int32),
            "float32": lambda: count(3, output_type=tf.float32),
            "bfloat16": lambda: count(3, output_type=tf.bfloat16),
            "complex64": lambda: count(3, output_type=tf.complex64),
            "uint8 around": lambda: count(254, 258, output_type=tf.uint8),
            "np.int32": lambda: count(np.int32(2)),
            "named": lambda: count(2, name="numbers"),
        },
    ) | {
        "no arguments": ask(count),
        "four arguments": ask(count, 1, 2, 3, 4),
        "step 0": ask(lambda: list(count(0, 5, 0))),
        "a float": ask(count, 2.5),
        "a whole float": ask(count, 2.0),
        "text": ask(count, "3"),
        "beyond int64": ask(count, 2**70),
        "elements of bool": ask(lambda: list(count(2, output_type=tf.bool))),
        "elements of string": ask(lambda: list(count(2, output_type=tf.string))),
    }


def _values():
    return {
        "number": 3,
        "list": [1, 2],
        "nested list": [[1, 2], [3, 4]],
        "tuple": ([1, 2], [3.5, 4.5]),
        "deep tuple": ([1], ([2], ([3],))),
        "dict": {"b": [1, 2], "a": ["x", "y"]},
        "OrderedDict": collections.OrderedDict([("b", [1]), ("a", [2])]),
        "defaultdict": collections.defaultdict(list, {"b": [1], "a": [2]}),
        "namedtuple": Pair([1, 2], [3, 4]),
        "attrs class": Record([1, 2], [3, 4]),
        "dataclass": Plain([1, 2], [3, 4]),
        "mixed": ([1], {"a": ["x"]}, Pair([1], [2.5])),
        "list of tuples": [(1, 2), (3, 4)],
        "list of dicts": [{"a": 1}],
        "array": np.arange(6).reshape(3, 2),
        "uint8 array": np.array([[1], [255]], np.uint8),
        "big-endian array": np.array([1, 2], ">f8"),
        "texts": ["a", "ä", ""],
        "bytes": [b"\xff", b"a\0"],
        "bools": [True, False],
        "empty list": [],
        "empty rows": [[], []],
        "empty array": np.zeros((0, 3), np.int16),
        "None": None,
        "empty tuple": (),
        "empty dict": {},
        "tuple of None": (None,),
        "tuple with None": ([1, 2], None),
        "dict with None": {"a": None, "b": [1]},
        "text": "a",
        "two lengths": ([1, 2], [1]),
        "ragged": [[1], [2, 3]],
        "object": object(),
        "dict with keys of two types": {1: [1], "a": [2]},
        "2**40": [2**40],
        "float64": np.array([0.1]),
        "list of uint8 arrays": [np.uint8([[1, 255]]), np.uint8([[3, 4]])],
        "list of int64 arrays": [np.int64([1, 2]), np.int64([3, 4])],
        "list of arrays without axes": [np.array(1), np.array(2)],
        "lists of lists of arrays": [[np.int16([1])], [np.int16([2])]],
        "list of empty arrays": [np.zeros(0, np.int64)] * 2,
        "list of arrays of two dtypes": [np.int8([1]), np.int64([2])],
        "list of an array and a list": [np.int64([1, 2]), [3, 4]],
        "list of tuples of arrays": [(np.int64([1]),)],
        "list of NumPy scalars": [np.int16(1), np.int16(2)],
        "dict of lists of arrays": {"a": [np.uint8([1])] * 2},
    }


def from_tensors(tf, ask):
    make = tf.data.Dataset.from_tensors
    return _all_facts(ask, {k: lambda v=v: make(v) for k, v in _values().items()}) | {
        "of a tensor": ask(lambda: list(make(tf.constant([1, 2])))),
        "of a list of tensors": ask(lambda: list(make([tf.constant(1), 2]))),
    }


def from_tensor_slices(tf, ask):
    make = tf.data.Dataset.from_tensor_slices
    return _all_facts(ask, {k: lambda v=v: make(v) for k, v in _values().items()}) | {
        "of a tensor": ask(lambda: list(make(tf.constant([1, 2])))),
        "of a list of tensors": ask(lambda: list(make([tf.constant(1), 2]))),
        "of tensors": ask(lambda: list(make((tf.constant([1, 2]), tf.constant(["a", "b"]))))),
        "of a scalar tensor": ask(lambda: make(tf.constant(1))),
    }


def repeat(tf, ask):
    count = tf.data.Dataset.range
    ended = _all_facts(
        ask,
        {
            "twice": lambda: count(2).repeat(2),
            "once": lambda: count(2).repeat(1),
            "never": lambda: count(2).repeat(0),
            "an empty one": lambda: count(0).repeat(3),
            "an empty one for ever": lambda: count(0).repeat(),
            "of repeats": lambda: count(2).repeat(2).repeat(2),
            "never, for ever": lambda: count(2).repeat(0).repeat(),
            "np.int64": lambda: count(2).repeat(np.int64(2)),
        },
    )
    return ended | {
        "for ever by None": ask(lambda: int(count(2).repeat(None).cardinality())),
        "for ever by -1": ask(lambda: int(count(2).repeat(-1).cardinality())),
        "for ever by -5": ask(lambda: int(count(2).repeat(-5).cardinality())),
        "for ever, twice": ask(lambda: int(count(2).repeat().repeat(2).cardinality())),
        "for ever, never": ask(lambda: int(count(2).repeat().repeat(0).cardinality())),
        "len for ever": ask(lambda: len(count(2).repeat())),
        "spec for ever": ask(lambda: count(2).repeat().element_spec),
        "first of endless": ask(
            lambda: [x for x, _ in zip(count(2).repeat(), "12345", strict=False)]
        ),
        "a float": ask(lambda: count(2).repeat(2.5)),
        "text": ask(lambda: count(2).repeat("2")),
        "keyword": ask(lambda: int(count(2).repeat(count=3).cardinality())),
        "cardinality beyond int64": ask(lambda: int(count(2**40).repeat(2**40).cardinality())),
    }


def batch(tf, ask):
    data = tf.data.Dataset
    rows = lambda: data.from_tensor_slices({"x": np.arange(10).reshape(5, 2), "y": list("abcde")})
    return _all_facts(
        ask,
        {
            "even": lambda: data.range(6).batch(2),
            "uneven": lambda: data.range(5).batch(2),
            "uneven dropped": lambda: data.range(5).batch(2, drop_remainder=True),
            "larger than the data": lambda: data.range(3).batch(10),
            "larger than the data dropped": lambda: data.range(3).batch(10, drop_remainder=True),
            "as large as the data": lambda: data.range(3).batch(3, True),
            "of one": lambda: data.range(2).batch(1),
            "of nothing": lambda: data.range(0).batch(2),
            "of nothing dropped": lambda: data.range(0).batch(2, drop_remainder=True),
            "of batches": lambda: data.range(10).batch(2).batch(2),
            "of batches, the last short": lambda: data.range(9).batch(2).batch(2),
            "of batches of two shapes": lambda: data.range(5).batch(2).batch(3),
            "of batches of two shapes dropped": lambda: data.range(5).batch(2).batch(4, True),
            "of repeated short batches": lambda: data.range(3).batch(2).repeat(2).batch(2),
            "of dropped batches": lambda: data.range(10).batch(2, True).batch(2, True),
            "of rows and texts": lambda: rows().batch(2),
            "of rows and texts dropped": lambda: rows().batch(2, drop_remainder=True),
            "over the end of a repeat": lambda: data.range(3).repeat(2).batch(4),
            "repeated": lambda: data.range(3).batch(2).repeat(2),
            "of None parts": lambda: data.from_tensor_slices(([1, 2, 3], None)).batch(2),
            "of one tensor": lambda: data.from_tensors([1, 2]).batch(3),
            "of empty rows": lambda: data.from_tensor_slices(np.zeros((3, 0))).batch(2),
            "named": lambda: data.range(2).batch(2, name="pairs"),
            "True": lambda: data.range(2).batch(True),
            "np.int32": lambda: data.range(3).batch(np.int32(2)),
        },
    ) | {
        "of endless": ask(lambda: int(data.range(3).repeat().batch(2).cardinality())),
        "spec of endless": ask(lambda: data.range(3).repeat().batch(2).element_spec),
        "first of endless": ask(
            lambda: [x for x, _ in zip(data.range(3).repeat().batch(2), "123", strict=False)]
        ),
        "0": ask(lambda: data.range(3).batch(0)),
        "-1": ask(lambda: data.range(3).batch(-1)),
        "a float": ask(lambda: data.range(3).batch(2.5)),
        "text": ask(lambda: data.range(3).batch("2")),
        "None": ask(lambda: data.range(3).batch(None)),
        "beyond int64": ask(lambda: data.range(3).batch(2**70)),
    }


def iterators(tf, ask):
    data = tf.data.Dataset
    iterator = iter(data.range(3))
    other = iter(data.range(3))
    return {
        "first": ask(next, iterator),
        "get_next": ask(iterator.get_next),
        "another one is untouched": ask(next, other),
        "rest": ask(list, iterator),
        "next after the end": ask(next, iterator),
        "next after the end again": ask(next, iterator),
        "get_next after the end": ask(iterator.get_next),
        "default after the end": ask(next, iterator, "ended"),
        "element_spec": iterator.element_spec,
        "iter of it is itself": iter(other) is other,
        "next of a dataset": ask(lambda: next(data.range(3))),
        "bool of an empty dataset": bool(data.range(0)),
        "read twice": ask(lambda: [list(d) for d in [data.range(2)] * 2]),
        "unpacked": ask(lambda: [int(a) + int(b) for a, b in data.from_tensor_slices(([1], [2]))]),
        "constant infinite": int(tf.data.INFINITE_CARDINALITY),
        "constant unknown": int(tf.data.UNKNOWN_CARDINALITY),
    }
