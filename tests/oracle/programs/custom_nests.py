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
