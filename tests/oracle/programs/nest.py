"""tf.nest: flatten, pack, map, compare."""

import collections
import dataclasses

import attr
import numpy as np

Pair = collections.namedtuple("Pair", "y x")
Other = collections.namedtuple("Other", "y x")
Again = collections.namedtuple("Pair", "y x")


@attr.s(auto_attribs=True)
class Record:
    b: int
    a: int


@attr.s
class Renamed:
    x = attr.ib(alias="y")
    _private = attr.ib()


@attr.s
class Filled:
    x = attr.ib()
    twice = attr.ib(init=False, default=0)


class Rows(list):
    pass


class Line(tuple):
    __slots__ = ()


class Settings(dict):
    def __init__(self):
        super().__init__()


def _settings(**values):
    settings = Settings()
    settings.update(values)
    return settings


@dataclasses.dataclass
class Plain:
    b: int
    a: int


STRUCTURES = {
    "tuple": (1, 2),
    "nested list": [1, [2, [3]]],
    "dict": {"b": 1, "a": 2},
    "dict of ints": {2: "two", 1: "one"},
    "nested dict": {"b": {"d": 1, "c": 2}, "a": (3, [4])},
    "namedtuple": Pair(1, 2),
    "attrs class": Record(1, 2),
    "attrs class with an alias": Renamed(y=1, private=2),
    "attrs class with a field of its own": Filled(1),
    "list of a subclass": Rows([1]),
    "dict of a subclass": _settings(b=1, a=2),
    "dataclass": Plain(1, 2),
    "None": None,
    "number": 3,
    "text": "ab",
    "bytes": b"ab",
    "dict with None": {"a": None},
    "empty tuple": (),
    "empty list": [],
    "empty dict": {},
    "nested empties": ([], {}, ((),)),
    "array": np.arange(2),
    "OrderedDict": collections.OrderedDict([("b", 1), ("a", 2)]),
    "defaultdict": collections.defaultdict(list, {"b": 1, "a": 2}),
    "range": range(3),
    "keys": {"b": 1, "a": 2}.keys(),
    "values": {"b": 1, "a": 2}.values(),
    "deque": collections.deque([1, 2]),
    "dict with keys of two types": {1: 1, "a": 2},
}


def flatten(tf, ask):
    return {label: ask(tf.nest.flatten, value) for label, value in STRUCTURES.items()}


def is_nested(tf, ask):
    return {label: ask(tf.nest.is_nested, value) for label, value in STRUCTURES.items()} | {
        "set": ask(tf.nest.is_nested, {1}),
        "iterator": ask(tf.nest.is_nested, iter([1])),
        "bytearray": ask(tf.nest.is_nested, bytearray(b"a")),
    }


def pack_sequence_as(tf, ask):
    pack = tf.nest.pack_sequence_as
    packed = {
        label: ask(lambda value=value: pack(value, tf.nest.flatten(value)))
        for label, value in STRUCTURES.items()
        if label not in ("keys", "values")
    }
    return packed | {
        "new values": ask(pack, {"b": 0, "a": (0, 0)}, [1, 2, 3]),
        "new nested values": ask(pack, (0,), [[1, 2]]),
        "too few": ask(pack, (0, 0), [1]),
        "too many": ask(pack, (0, 0), [1, 2, 3]),
        "one value": ask(pack, 0, [1]),
        "two values for one": ask(pack, 0, [1, 2]),
        "no values for one": ask(pack, 0, []),
        "a number": ask(pack, (0,), 3),
        "a tuple": ask(pack, [0, 0], (1, 2)),
        "an array": ask(pack, (0, 0), np.array([1, 2])),
        "text": ask(pack, (0, 0), "ab"),
        "nothing": ask(pack, (), []),
        "a dict": ask(pack, [0, 0], {"a": 1, "b": 2}),
        "a dict for one": ask(pack, 0, {"a": 1}),
        "keys": ask(pack, [0, 0], {"a": 1, "b": 2}.keys()),
        "values": ask(pack, [0, 0], {"a": 1, "b": 2}.values()),
        "a set": ask(pack, [0, 0], {1, 2}),
        "an iterator": ask(pack, [0, 0], iter([1, 2])),
        "a range": ask(pack, [0, 0], range(2)),
    }


def map_structure(tf, ask):
    run = tf.nest.map_structure
    add, again = lambda x, y: x + y, lambda x: x
    mapped = {
        label: ask(run, again, value)
        for label, value in STRUCTURES.items()
        if label not in ("keys", "values")
    }
    return mapped | {
        "two": ask(run, add, (1, [2]), (3, [4])),
        "three": ask(run, lambda x, y, z: x + y + z, [1], [2], [3]),
        "other lengths": ask(run, add, (1, 2), (1,)),
        "other types": ask(run, add, [1, 2], (3, 4)),
        "other types unchecked": ask(run, add, [1, 2], (3, 4), check_types=False),
        "other keys": ask(run, add, {"a": 1}, {"b": 1}),
        "no structure": ask(run, again),
        "no function": ask(run, 3, (1,)),
        "order of keys": ask(lambda: list(run(again, {"b": 1, "a": 2}))),
        "an error inside": ask(run, lambda x: 1 // x, (0,)),
        "None inside": ask(run, again, (None, [None])),
    }


def assert_same_structure(tf, ask):
    pairs = {
        "tuples": ((1, 2), (3, 4)),
        "tuple and list": ((1, 2), [3, 4]),
        "lengths": ((1, 2), (3,)),
        "keys": ({"a": 1}, {"b": 1}),
        "more keys": ({"a": 1}, {"a": 1, "b": 2}),
        "dict and OrderedDict": ({"a": 1}, collections.OrderedDict(a=1)),
        "dict and defaultdict": ({"a": 1}, collections.defaultdict(int, a=1)),
        "orders of keys": ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
        "two namedtuples": (Pair(1, 2), Other(1, 2)),
        "one namedtuple made twice": (Pair(1, 2), Again(1, 2)),
        "namedtuple and tuple": (Pair(1, 2), (1, 2)),
        "attrs classes": (Record(1, 2), Record(3, 4)),
        "attrs class and tuple": (Record(1, 2), (1, 2)),
        "number and tuple": (1, (1,)),
        "tuple and number": ((1,), 1),
        "turned": ((1, (2, 3)), ((2, 3), 1)),
        "None and number": (None, 1),
        "None and tuple": (None, (1,)),
        "dict and list": ({"a": 1}, [1]),
        "types inside": ({"a": (1,)}, {"a": [1]}),
        "empty list and tuple": ([], ()),
        "empty dict and list": ({}, []),
        "text and number": ("ab", 1),
        "array and list": (np.arange(2), [0, 1]),
        "list and its subclass": ([1], Rows([1])),
        "subclass of list and list": (Rows([1]), [1]),
        "subclass of list and tuple": (Rows([1]), (1,)),
        "tuple and its subclass": ((1,), Line((1,))),
        "dict and its subclass": ({"a": 1}, _settings(a=1)),
        "list and range": ([0], range(1)),
    }
    same = tf.nest.assert_same_structure
    checked = {label: ask(same, *pair) for label, pair in pairs.items()}
    unchecked = {f"{k} unchecked": ask(same, *p, check_types=False) for k, p in pairs.items()}
    return checked | unchecked
