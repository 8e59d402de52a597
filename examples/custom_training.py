"""A custom training loop with a Keras model, as in TensorFlow's tutorial: only the import differs."""

import numpy as np

import evenfeed as tf


def main() -> None:
    strategy = two_replicas()
    batch_size = 32
    random = np.random.default_rng(0)
    images = random.normal(size=(200, 8, 8, 1)).astype(np.float32)
    labels = (images.mean((1, 2, 3)) > 0).astype(np.int32)
    dataset = tf.data.Dataset.from_tensor_slices((images, labels)).shuffle(200).batch(batch_size)
    batches = strategy.experimental_distribute_dataset(dataset)

    with strategy.scope():
        model = tf.keras.Sequential(
            [
                tf.keras.layers.Conv2D(8, 3, activation="relu"),
                tf.keras.layers.Flatten(),
                tf.keras.layers.Dense(2),
            ]
        )
        optimizer = tf.keras.optimizers.Adam(0.01)
        loss_object = tf.keras.losses.SparseCategoricalCrossentropy(
            from_logits=True, reduction=tf.keras.losses.Reduction.NONE
        )
        accuracy = tf.keras.metrics.SparseCategoricalAccuracy()

    def train_step(images, labels):
        with tf.GradientTape() as tape:
            predictions = model(images, training=True)
            losses = loss_object(labels, predictions)
            loss = tf.nn.compute_average_loss(losses, global_batch_size=batch_size)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        accuracy.update_state(labels, predictions)
        return loss

    @tf.function
    def distributed_train_step(images, labels):
        losses = strategy.run(train_step, args=(images, labels))
        return strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)

    for epoch in range(8):
        losses = [float(distributed_train_step(images, labels)) for images, labels in batches]
        print(f"epoch {epoch}: loss {np.mean(losses):.3f}, accuracy {float(accuracy.result()):.2f}")
        accuracy.reset_state()


def two_replicas() -> tf.distribute.MirroredStrategy:
    if not tf.config.list_physical_devices("GPU"):
        cpu = tf.config.list_physical_devices("CPU")[0]
        tf.config.set_logical_device_configuration(
            cpu, [tf.config.LogicalDeviceConfiguration()] * 2
        )
    return tf.distribute.MirroredStrategy()


if __name__ == "__main__":
    main()
