"""Dataclasses that say themselves what their parts are: `__tf_flatten__` and `__tf_unflatten__`."""

import dataclasses
from typing import Any

import numpy as np


@dataclasses.dataclass
class Masked:
    mask: Any
    value: Any

    def __tf_flatten__(self):
        return (self.mask,), (self.value,)

    @classmethod
    def __tf_unflatten__(cls, metadata, components):
        return cls(mask=metadata[0], value=components[0])


def nests(tf, ask):
    masked = Masked(True, 1)
    return {
        "flatten": ask(tf.nest.flatten, [masked, 2]),
        "flatten, deep": ask(tf.nest.flatten, {"a": Masked(False, {"c": 1, "b": [2]})}),
        "is nested": ask(tf.nest.is_nested, masked),
        "map": _shown(tf.nest.map_structure(lambda x: x + 1, masked)),
        "pack": _shown(tf.nest.pack_sequence_as(masked, [5])),
        "the same": ask(tf.nest.assert_same_structure, masked, Masked(True, 3)),
        "against a number": ask(tf.nest.assert_same_structure, masked, 3),
        "against a tuple": ask(tf.nest.assert_same_structure, masked, (3,)),
    }


def elements(tf, ask):
    dataset = tf.data.Dataset
    slices = dataset.from_tensor_slices(Masked(True, np.array([1, 2])))
    made = dataset.range(2).map(lambda x: Masked(False, x))
    return {
        "slices": [_shown(x) for x in slices],
        "their spec": _shown(slices.element_spec),
        "mapped": [_shown(x) for x in slices.map(lambda x: Masked(not x.mask, x.value * 2))],
        "made by a map": [_shown(x) for x in made],
        "batched": [_shown(x) for x in made.batch(2)],
        "zipped": [(_shown(a), b) for a, b in dataset.zip((made, dataset.range(2)))],
        "filtered": [_shown(x) for x in made.filter(lambda x: x.value > 0)],
    }


def _shown(masked):
    return [type(masked).__name__, masked.mask, masked.value]


def compiled(tf, ask):
    traced = []

    @tf.function
    def flipped(masked):
        traced.append(masked.mask)
        return Masked(not masked.mask, masked.value * 2)

    one = tf.constant([1.0, 2.0])
    signed = tf.function(
        lambda x: x.value + 1, input_signature=[Masked(True, tf.TensorSpec([None]))]
    )
    return {
        "a result": _shown(flipped(Masked(True, one))),
        "no second trace": (_shown(flipped(Masked(True, one + 1))), len(traced)),
        "other metadata": (_shown(flipped(Masked(False, one))), len(traced)),
        "another shape": (_shown(flipped(Masked(True, one[:1]))), len(traced)),
        "only returned": _shown(tf.function(lambda x: Masked("a", x))(one)),
        "nested": _shown(tf.function(lambda d: d["a"][0])({"a": [Masked(True, one)]})),
        "two levels": _shown(
            tf.function(lambda m: Masked(1, m.value.value))(Masked(True, Masked(False, one)))
        ),
        "a signature": ask(signed, Masked(True, one)),
        "concrete": _shown(
            flipped.get_concrete_function(Masked(True, tf.TensorSpec([2])))(Masked(True, one))
        ),
        "a variable": ask(
            tf.function(lambda m: m.value.assign_add(1.0)), Masked(True, tf.Variable(1.0))
        ),
    }


def replicas(tf, ask):
    strategy = tf.distribute.get_strategy()
    doubled = strategy.run(lambda m: Masked(m.mask, m.value * 2), (Masked(True, tf.constant(1.0)),))
    return {"the default strategy": _shown(doubled), "its parts": ask(lambda: doubled.value + 1)}
