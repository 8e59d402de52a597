"""Keras in the scope of a MeshStrategy trains as in that of a MirroredStrategy."""

import jax
import numpy as np
from jax.sharding import Mesh

import evenfeed as tf

X = np.random.default_rng(0).normal(size=(16, 4)).astype(np.float32)
Y = X.sum(1, keepdims=True)


def trained(strategy):
    """Return the losses of `fit`, and of a step with a tape that continues it."""
    tf.keras.utils.set_random_seed(1)
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(3), tf.keras.layers.Dense(1)])
        model.compile("sgd", "mse")
    dataset = tf.data.Dataset.from_tensor_slices((X, Y)).batch(8)
    losses = model.fit(dataset, epochs=2, verbose=0).history["loss"]

    @tf.function
    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum((model(x) - y) ** 2) / 8
        gradients = tape.gradient(loss, model.trainable_variables)
        model.optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    steps = strategy.experimental_distribute_dataset(dataset)
    more = [strategy.reduce("SUM", strategy.run(step, args=batch), axis=None) for batch in steps]
    return [*losses, *map(float, more)]


def test_a_model_trains_on_a_mesh_with_inner_axes():
    mesh = Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ("data", "tensor"))
    found = trained(tf.distribute.MeshStrategy(mesh))
    assert found[-1] < found[0]
    mirrored = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    np.testing.assert_allclose(found, trained(mirrored), rtol=1e-5)
