"""Imports Keras itself, before or after evenfeed, and trains a model on a dataset in the scope of a strategy."""

import os
import sys

if sys.argv[1] == "before":
    os.environ["KERAS_BACKEND"] = "jax"
    import keras

    import evenfeed as tf
else:
    import evenfeed as tf

    assert "keras" not in sys.modules
    import keras

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy()
with strategy.scope():
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse")
dataset = tf.data.Dataset.from_tensor_slices(([[1.0], [2.0], [3.0]], [1.0, 2.0, 3.0])).batch(2)
model.fit(dataset, epochs=1, verbose=0)
sys.stdout.write(f"{keras.backend.backend()} {len(model.layers[0].kernel.value.devices())}\n")
