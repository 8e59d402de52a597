"""A MeshStrategy inside of `jax.set_mesh`."""

import jax
import numpy as np
import pytest
from jax.sharding import AxisType, Mesh
from jax.sharding import PartitionSpec as P

import evenfeed as tf
from evenfeed.distribute import MeshStrategy

MEAN = tf.VariableAggregation.MEAN


@pytest.mark.parametrize("explicit", [False, True], ids=["Auto", "Explicit"])
@pytest.mark.parametrize("data_axes", [("data",), ("data", "tensor")], ids=["inner axes", "none"])
def test_a_strategy_works_inside_of_set_mesh(data_axes, explicit, tmp_path):
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
        losses = strategy.run_steps(tf.reduce_sum, iter(steps), 2)
        values += [float(x) for each in losses for x in strategy.experimental_local_results(each)]
        w.assign_add([1.0, 1.0])
        path = tf.train.Checkpoint(w=w).save(str(tmp_path / "saved"))
        before = w.numpy().tolist()
        w.assign([0.0, 0.0])
        tf.train.Checkpoint(w=w).restore(path)
        return values, before, w.numpy().tolist()

    expected = trained()
    own = jax.make_mesh((8,), ("other",)) if explicit else mesh
    with jax.set_mesh(own):
        assert trained() == expected


@pytest.mark.parametrize("kind", [AxisType.Auto, AxisType.Explicit], ids=["Auto", "Explicit"])
def test_a_loop_that_carries_a_number_works_inside_of_set_mesh(kind):
    strategy = MeshStrategy(Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "tensor")))
    dataset = tf.data.Dataset.range(8, output_type=tf.float32).batch(4)

    @tf.function
    def summed(iterator):
        total = 0.0
        for _ in tf.range(2):
            losses = strategy.run(tf.reduce_sum, args=(next(iterator),))
            total += strategy.reduce("SUM", losses, axis=None)
        return total

    with jax.set_mesh(jax.make_mesh((4, 2), ("data", "tensor"), axis_types=(kind, kind))):
        assert float(summed(iter(strategy.experimental_distribute_dataset(dataset)))) == 28
