"""Custom training loops with Keras models, in the manner of TensorFlow's tutorials: losses, metrics and weights.

The weights come from NumPy, so that both start alike. Numbers are rounded to 4 decimals: convolutions add up in another
order.
"""

import numpy as np


def _data(rows):
    random = np.random.default_rng(7)
    images = random.normal(size=(rows, 8, 8, 1)).astype(np.float32)
    labels = (images.mean((1, 2, 3)) * 20).astype(np.int64) % 3
    return images, np.abs(labels)


def _cnn(tf, regularizer=None):
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [
            tf.keras.Input([8, 8, 1]),
            layers.Conv2D(4, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(8, activation="tanh", kernel_regularizer=regularizer),
            layers.Dense(3),
        ]
    )
    return _with_weights(model)


def _with_weights(model):
    random = np.random.default_rng(3)
    model.set_weights([random.normal(size=w.shape).astype(np.float32) * 0.3 for w in model.weights])
    return model


def _rounded(values, digits=4):
    return [round(float(value), digits) for value in values]


def _sums(model):
    return _rounded((w.sum() for w in model.get_weights()), 3)


def distributed(tf, ask):
    """The tutorial "Custom training with tf.distribute.Strategy", on 2 replicas."""

    def train(optimizer, regularizer=None):
        ops = getattr(tf.distribute, "ReductionToOneDevice", lambda: None)()
        strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"], cross_device_ops=ops)
        size = 16
        images, labels = _data(40)  # the last batch has 8 rows
        dataset = tf.data.Dataset.from_tensor_slices((images, labels))
        train_set = strategy.experimental_distribute_dataset(dataset.batch(size))
        test_set = strategy.experimental_distribute_dataset(dataset.take(24).batch(size))
        with strategy.scope():
            loss_object = tf.keras.losses.SparseCategoricalCrossentropy(
                from_logits=True, reduction=tf.keras.losses.Reduction.NONE
            )
            test_loss = tf.keras.metrics.Mean(name="test_loss")
            accuracy = tf.keras.metrics.SparseCategoricalAccuracy(name="accuracy")
            model = _cnn(tf, regularizer)
            optimizer = optimizer()

        def compute_loss(labels, predictions, model_losses):
            per_example = loss_object(labels, predictions)
            loss = tf.nn.compute_average_loss(per_example, global_batch_size=size)
            if model_losses:
                loss += tf.nn.scale_regularization_loss(tf.add_n(model_losses))
            return loss

        def train_step(inputs):
            images, labels = inputs
            with tf.GradientTape() as tape:
                predictions = model(images, training=True)
                loss = compute_loss(labels, predictions, model.losses)
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
            accuracy.update_state(labels, predictions)
            return loss

        def test_step(inputs):
            images, labels = inputs
            test_loss.update_state(loss_object(labels, model(images, training=False)))

        @tf.function
        def distributed_train_step(inputs):
            losses = strategy.run(train_step, args=(inputs,))
            return strategy.reduce(tf.distribute.ReduceOp.SUM, losses, axis=None)

        @tf.function
        def distributed_test_step(inputs):
            return strategy.run(test_step, args=(inputs,))

        found = []
        for _ in range(3):
            losses = [distributed_train_step(batch) for batch in train_set]
            for batch in test_set:
                distributed_test_step(batch)
            found.append(_rounded([*losses, accuracy.result(), test_loss.result()]))
            accuracy.reset_state()
            test_loss.reset_state()
        return found, int(optimizer.iterations.numpy()), _sums(model)

    keras = tf.keras.optimizers

    def scheduled():
        return keras.SGD(keras.schedules.ExponentialDecay(0.2, 2, 0.5), momentum=0.9)

    return {
        "adam": ask(train, keras.Adam),
        "momentum and a schedule": ask(train, scheduled),
        "regularized": ask(train, keras.RMSprop, regularizer="l2"),
    }


def loops(tf, ask):
    """Loops without strategies, and iteration inside of functions."""
    x = np.random.default_rng(1).normal(size=(24, 5)).astype(np.float32)
    y = (x @ np.arange(5, dtype=np.float32) / 5)[:, None]

    def model_of():
        layers = tf.keras.layers
        return _with_weights(
            tf.keras.Sequential(
                [tf.keras.Input([5]), layers.Dense(6, activation="relu"), layers.Dense(1)]
            )
        )

    def eager(clip):
        model, optimizer = model_of(), tf.keras.optimizers.SGD(0.1, clipnorm=clip)
        losses = []
        for rows, targets in tf.data.Dataset.from_tensor_slices((x, y)).batch(8):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(model(rows, training=True) - targets))
            gradients = tape.gradient(loss, model.trainable_weights)
            optimizer.apply_gradients(zip(gradients, model.trainable_weights, strict=True))
            losses.append(loss)
        return _rounded(losses), _sums(model)

    def in_function():
        strategy = tf.distribute.MirroredStrategy(
            ["CPU:0", "CPU:1"],
            cross_device_ops=getattr(tf.distribute, "ReductionToOneDevice", lambda: None)(),
        )
        with strategy.scope():
            model, optimizer = model_of(), tf.keras.optimizers.SGD(0.1)
        dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(8)
        distributed = strategy.experimental_distribute_dataset(dataset)

        def step(inputs):
            rows, targets = inputs
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(tf.square(model(rows) - targets)) / 8.0
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
            return loss

        @tf.function
        def epoch(distributed):
            total, steps = 0.0, 0
            for inputs in distributed:
                losses = strategy.run(step, args=(inputs,))
                total += strategy.reduce("SUM", losses, axis=None)
                steps += 1
            return total / tf.cast(steps, tf.float32)

        return _rounded([epoch(distributed), epoch(distributed)])

    def penalty():
        model = model_of()
        with tf.GradientTape() as tape:
            rows = tf.constant(x)
            with tf.GradientTape() as inner:
                inner.watch(rows)
                out = model(rows)
            slope = inner.gradient(out, rows)
            loss = tf.reduce_mean(tf.square(tf.norm(slope, axis=1) - 1.0))
        gradients = tape.gradient(loss, model.trainable_variables)
        return [None if g is None else _rounded([tf.reduce_sum(g)]) for g in gradients]

    return {
        "eager": ask(eager, None),
        "eager, clipped": ask(eager, 0.5),
        "iteration inside a function": ask(in_function),
        "a gradient penalty": ask(penalty),
        "a gradient penalty, function": ask(lambda: _in_function(tf, model_of, x)),
    }


def _in_function(tf, model_of, x):
    model = model_of()

    @tf.function
    def penalty(rows):
        with tf.GradientTape() as tape:
            with tf.GradientTape() as inner:
                inner.watch(rows)
                out = tf.sin(model(rows))
            slope = inner.gradient(out, rows)
            loss = tf.reduce_mean(tf.square(tf.norm(slope, axis=1) - 1.0))
        return tape.gradient(loss, model.trainable_variables)

    return _rounded(tf.reduce_sum(g) for g in penalty(tf.constant(x)))
