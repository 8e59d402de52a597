import numpy as np

import evenfeed as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy()

with strategy.scope():
    weights = tf.Variable(tf.zeros([3]), aggregation=tf.VariableAggregation.MEAN)

rows = np.random.default_rng(0).normal(size=(100, 3)).astype(np.float32)
dataset = tf.data.Dataset.from_tensor_slices((rows, rows.sum(axis=1))).batch(8).repeat(4)


def step(batch):
    x, y = batch
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((tf.linalg.matvec(x, weights) - y) ** 2)
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
    return loss


@tf.function
def train(iterator, steps):
    total = 0.0
    for _ in tf.range(steps):  # one compiled program
        losses = strategy.run(step, args=(next(iterator),))
        total += strategy.reduce("MEAN", losses, axis=None)
    return total / steps


iterator = iter(strategy.experimental_distribute_dataset(dataset))
print("mean loss of 20 steps:", round(float(train(iterator, 20)), 4))

while results := strategy.run_steps(step, iterator, steps=16):  # the same, and until the data ends
    last = strategy.reduce("MEAN", results[-1], axis=None)
    print(len(results), "more steps, last loss:", round(float(last), 6))
print("weights", weights.numpy().round(3))
