"""Predicts on four replicas, and writes the predictions in the order of the input, a short last batch included."""

import numpy as np

import evenfeed as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 4)
strategy = tf.distribute.MirroredStrategy()

rows = np.random.default_rng(0).random((1003, 8), np.float32)
weights = np.arange(8, dtype=np.float32)
dataset = tf.data.Dataset.from_tensor_slices(rows).batch(64)
options = tf.distribute.InputOptions(pad_partial_batches=True)


@tf.function
def predict(x):
    return strategy.run(lambda x: x @ weights, args=(x,))


def predictions():
    """Yield the predictions of each batch: the replicas' parts one after the other are its rows."""
    for x, valid in strategy.experimental_distribute_dataset(dataset, options):
        yield np.asarray(predict(x).array)[np.asarray(valid.array)]


found = np.concatenate(list(predictions()))
np.testing.assert_allclose(found, rows @ weights, rtol=1e-5)
print(f"{len(found)} predictions of {len(rows)} rows, in order, by one compiled program")
print("traced", predict.experimental_get_tracing_count(), "time")
