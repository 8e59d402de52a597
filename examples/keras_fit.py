"""Trains a Keras model on several replicas, with callbacks: TensorFlow's program, with another import."""

import tempfile
from pathlib import Path

import numpy as np

import evenfeed as tf  # was: import tensorflow as tf

# Four replicas on the processor. With GPUs or TPUs, leave this out.
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 4)

strategy = tf.distribute.MirroredStrategy()
BATCH = 16 * strategy.num_replicas_in_sync

random = np.random.default_rng(0)
x = random.normal(size=(1000, 8)).astype(np.float32)
y = (x[:, 0] * x[:, 1] > 0).astype(np.int32)
data = tf.data.Dataset.from_tensor_slices((x, y))
train = data.take(800).cache().shuffle(800, seed=1).batch(BATCH)
check = data.skip(800).batch(BATCH)  # the last batch is short

with strategy.scope():
    model = tf.keras.Sequential(
        [
            tf.keras.layers.Input((8,)),
            tf.keras.layers.Dense(32, activation="relu"),
            tf.keras.layers.Dense(2),
        ]
    )
    model.compile(
        optimizer=tf.keras.optimizers.Adam(0.01),
        loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )

with tempfile.TemporaryDirectory() as folder:
    best = Path(folder) / "best.keras"
    callbacks = [
        tf.keras.callbacks.ModelCheckpoint(best, monitor="val_accuracy", save_best_only=True),
        tf.keras.callbacks.LearningRateScheduler(lambda epoch: 0.01 if epoch < 10 else 0.002),
    ]
    model.fit(train, epochs=15, validation_data=check, callbacks=callbacks, verbose=0)
    with strategy.scope():
        model = tf.keras.models.load_model(best)

loss, accuracy = model.evaluate(check, verbose=0)
print(f"Accuracy on {strategy.num_replicas_in_sync} replicas: {accuracy:.0%}")
assert accuracy > 0.85
print("Predictions:", model.predict(check, verbose=0).argmax(1)[:8].tolist())
