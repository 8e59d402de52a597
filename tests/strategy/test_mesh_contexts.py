"""A MeshStrategy inside of `jax.set_mesh`."""

import jax
import numpy as np
import pytest
from jax.sharding import Mesh
from jax.sharding import PartitionSpec as P

import evenfeed as tf
from evenfeed.distribute import MeshStrategy

MEAN = tf.VariableAggregation.MEAN


@pytest.mark.parametrize("explicit", [False, True], ids=["Auto", "Explicit"])
@pytest.mark.parametrize("data_axes", [("data",), ("data", "tensor")], ids=["inner axes", "none"])
def test_a_strategy_works_inside_of_set_mesh(data_axes, explicit):
    mesh = Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "tensor"))
    strategy = MeshStrategy(mesh, data_axes)
    dataset = tf.data.Dataset.range(8, output_type=tf.float32).batch(4)

    def trained():
        with strategy.scope():
            w = tf.Variable([1.0, 1.0], aggregation=MEAN, sharding=P("tensor"))

        def step(x):
            w.assign_add(tf.fill([2], tf.reduce_sum(x)))
            return w.value()[0] * 2

        @tf.function
        def of_one(x):
            return strategy.reduce("MEAN", strategy.run(step, args=(x,)), axis=None)

        @tf.function
        def of_all(iterator):
            for _ in tf.range(2):
                value = strategy.run(step, args=(next(iterator),))
            return strategy.reduce("MEAN", value, axis=None)

        steps = strategy.experimental_distribute_dataset(dataset)
        values = [float(strategy.run(tf.function(step), args=(x,)).values[0]) for x in steps]
        values += [float(of_one(x)) for x in steps]
        values.append(float(of_all(iter(steps))))
        w.assign_add([1.0, 1.0])
        return values, w.numpy().tolist()

    expected = trained()
    own = jax.make_mesh((8,), ("other",)) if explicit else mesh
    with jax.set_mesh(own):
        assert trained() == expected
