"""Dataclasses with `__tf_flatten__` as arguments and results of compiled functions."""

import dataclasses
from typing import Any

import pytest
from tests.mirroring import mirrored, run

import evenfeed as tf


@dataclasses.dataclass
class Masked:
    mask: Any
    value: Any

    def __tf_flatten__(self):
        return (self.mask,), (self.value,)

    @classmethod
    def __tf_unflatten__(cls, metadata, components):
        return cls(mask=metadata[0], value=components[0])


def doubled(masked):
    return Masked(not masked.mask, masked.value * 2)


def of_replicas(strategy, masked):
    assert type(masked) is Masked
    values = strategy.experimental_local_results(masked.value)
    return masked.mask, [value.numpy().tolist() for value in values]


@pytest.mark.parametrize("way", ["eager", "compiled"])
def test_run_opens_them_and_returns_the_class(way):
    strategy = mirrored(2)
    result = run(way, strategy, doubled, Masked(True, tf.constant([1.0])))
    assert of_replicas(strategy, result) == (False, [[2.0], [2.0]])
    nested = run(way, strategy, lambda d: {"a": [doubled(d["a"])]}, {"a": Masked(1, tf.ones([1]))})
    assert of_replicas(strategy, nested["a"][0]) == (False, [[2.0], [2.0]])


@pytest.mark.parametrize("way", ["eager", "compiled"])
def test_elements_of_a_distributed_dataset_arrive_as_the_class(way):
    strategy = mirrored(2)
    rows = tf.data.Dataset.range(4).map(lambda x: Masked(True, tf.cast(x, tf.float32))).batch(4)
    [element] = strategy.experimental_distribute_dataset(rows)
    assert of_replicas(strategy, element) == (True, [[0.0, 1.0], [2.0, 3.0]])
    result = run(way, strategy, doubled, element)
    assert of_replicas(strategy, result) == (False, [[0.0, 2.0], [4.0, 6.0]])


def test_results_of_replicas_are_reduced_and_taken_apart():
    strategy = mirrored(2)
    result = strategy.run(doubled, (Masked(True, tf.constant([1.0])),))
    assert strategy.reduce("SUM", result, axis=None).value.tolist() == [4.0]
    locals_ = strategy.experimental_local_results(result)
    assert [(part.mask, part.value.tolist()) for part in locals_] == [(False, [2.0])] * 2


def test_a_class_without_the_protocol_is_refused_with_a_way_out():
    @dataclasses.dataclass
    class Plain:
        value: Any

    with pytest.raises(TypeError, match="register_dataclass"):
        tf.function(lambda plain: plain.value)(Plain(tf.constant(1.0)))
