"""User subclasses of dicts and lists are flattened in run and in functions, and come back as the same class."""

import collections
import types

import jax.numpy as jnp
import numpy as np
import pytest
from tests.mirroring import context, each, mirrored

import evenfeed as tf


class OwnDict(dict):
    pass


class OwnList(list):
    pass


class OwnTuple(tuple):
    __slots__ = ()


class OwnMapping(collections.UserDict):
    pass


MADE = {
    "dict": lambda x: OwnDict(b=x, a=1),
    "list": lambda x: OwnList([x, 1]),
    "tuple": lambda x: OwnTuple([x, 1]),
    "UserDict": lambda x: collections.UserDict(b=x, a=1),
    "Mapping": lambda x: OwnMapping(b=x, a=1),
    "ChainMap": lambda x: collections.ChainMap({"b": x, "a": 1}),
    "Counter": lambda x: collections.Counter(b=x, a=1),
    "proxy": lambda x: types.MappingProxyType({"b": x, "a": 1}),
    "nested": lambda x: {"in": OwnList([OwnDict(b=x), (x, None)])},
    "OrderedDict": lambda x: collections.OrderedDict(b=x, a=1),
}
of_all_kinds = pytest.mark.parametrize("make", MADE.values(), ids=MADE)
WAYS = {
    "eager": lambda s, fn, *args: s.run(fn, args=args),
    "compiled": lambda s, fn, *args: s.run(tf.function(fn), args=args),
    "in a function": lambda s, fn, *args: tf.function(lambda *own: s.run(fn, args=own))(*args),
    "captured": lambda s, fn, *args: tf.function(lambda: s.run(fn, args=args))(),
}
in_all_ways = pytest.mark.parametrize("run", WAYS.values(), ids=WAYS)


@pytest.fixture
def strategy():
    return mirrored(2)


def leaves(value):
    return tf.nest.flatten(value)


def kinds(value):
    found = [type(value)]
    if isinstance(value, (collections.abc.Mapping)):
        found += [kind for key in value for kind in kinds(value[key])]
    elif isinstance(value, (list, tuple)):
        found += [kind for part in value for kind in kinds(part)]
    return [kind for kind in found if issubclass(kind, (collections.abc.Mapping, list, tuple))]


@of_all_kinds
@in_all_ways
@pytest.mark.parametrize("uneven", [False, True], ids=["even", "uneven"])
def test_each_replica_gets_its_parts_in_the_same_classes(strategy, make, run, uneven):
    x = each(strategy, lambda r: jnp.zeros(2 + r * uneven) + r)
    given = make(x)
    seen = []

    def step(own):
        seen.append(kinds(own))
        first = next(leaf for leaf in leaves(own) if getattr(leaf, "shape", None))
        return first + 1

    result = run(strategy, step, given)
    assert [part.tolist() for part in result.values] == [[1.0, 1.0], [2.0] * (2 + uneven)]
    assert all(found == kinds(given) for found in seen)


@of_all_kinds
@in_all_ways
def test_what_replicas_return_comes_together_in_the_same_classes(strategy, make, run):
    x = each(strategy, lambda r: jnp.zeros(2) + r)
    result = run(strategy, lambda x: make(x + 1), x)
    assert kinds(result) == kinds(make(0))
    (first, *_) = [leaf for leaf in leaves(result) if isinstance(leaf, tf.distribute.PerReplica)]
    assert [part.tolist() for part in first.values] == [[1.0, 1.0], [2.0, 2.0]]


def test_functions_take_and_return_them(strategy):
    double = tf.function(lambda own: OwnDict(y=own["x"] * 2))
    for _ in range(2):
        result = double(OwnDict(x=jnp.ones(2)))
        assert type(result) is OwnDict
        assert result["y"].tolist() == [2.0, 2.0]
    assert double.experimental_get_tracing_count() == 1


def test_collectives_take_and_return_them(strategy):
    x = each(strategy, lambda r: jnp.zeros(1) + r)

    def step(x):
        total = context().all_reduce("SUM", OwnDict(t=x))
        joined = context().all_gather(OwnList([x]), 0)
        merged = context().merge_call(lambda s, d: s.reduce("SUM", d["a"], None), (OwnDict(a=x),))
        return type(total) is OwnDict, type(joined) is OwnList, total["t"], joined[0], merged

    was_dict, was_list, total, joined, merged = strategy.run(step, args=(x,))
    assert was_dict
    assert was_list
    assert [part.tolist() for part in total.values] == [[1.0]] * 2
    assert [part.tolist() for part in joined.values] == [[0.0, 1.0]] * 2
    assert np.asarray(strategy.experimental_local_results(merged)[0]).tolist() == [1.0]


def test_one_without_tensors_of_replicas_stays_the_object_that_it_is(strategy):
    settings = OwnDict(rate=0.1)
    one = tf.distribute.OneDeviceStrategy("CPU:0")
    assert one.run(lambda d: d is settings, args=(settings,))


def test_programs_do_not_keep_the_values_of_a_container():
    double = tf.function(lambda own: own["x"] * 2)
    given = OwnDict(x=jnp.ones(2))
    double(given)
    key = next(iter(double._compiler._container_compiler._known))
    assert not any(leaf is given["x"] for leaf in key)
