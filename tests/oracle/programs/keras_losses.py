"""Losses of Keras on replicas: mean losses are divided by the number of replicas, because gradients are summed."""

import numpy as np

ACTUAL = np.arange(8, dtype=np.float32).reshape(4, 2) / 8
GUESSED = np.sin(np.arange(8, dtype=np.float32)).reshape(4, 2)
CLASSES = np.array([0, 1, 1, 0])


def _losses(tf):
    keras = tf.keras
    regularized = keras.Sequential(
        [
            keras.layers.Input((2,)),
            keras.layers.Dense(
                2, kernel_initializer="ones", kernel_regularizer=keras.regularizers.L2(0.5)
            ),
        ]
    )
    regularized.compile(loss="mse")
    return {
        "mean": lambda: keras.losses.MeanSquaredError()(ACTUAL, GUESSED),
        "sum": lambda: keras.losses.MeanSquaredError(reduction="sum")(ACTUAL, GUESSED),
        "none": lambda: keras.losses.MeanSquaredError(reduction=None)(ACTUAL, GUESSED),
        "classes": lambda: keras.losses.SparseCategoricalCrossentropy(from_logits=True)(
            CLASSES, GUESSED
        ),
        "weights": lambda: keras.losses.Huber()(ACTUAL, GUESSED, sample_weight=np.arange(4.0)),
        "function": lambda: keras.losses.mean_squared_error(ACTUAL, GUESSED),
        "additional": lambda: tf.add_n(regularized.losses),
    }


def on_replicas(tf, ask):
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])

    def found(loss):
        return list(strategy.experimental_local_results(strategy.run(loss)))

    with strategy.scope():
        losses = _losses(tf)
    return {label: ask(found, loss) for label, loss in losses.items()}


def compiled(tf, ask):
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])

    def found(loss):
        @tf.function
        def step():
            return strategy.run(loss)

        return list(strategy.experimental_local_results(step()))

    with strategy.scope():
        losses = _losses(tf)
    return {label: ask(found, loss) for label, loss in losses.items()}


def on_one_replica(tf, ask):
    strategy = tf.distribute.OneDeviceStrategy("CPU:0")
    plain = {label: ask(loss) for label, loss in _losses(tf).items()}
    with strategy.scope():
        losses = _losses(tf)
    return plain | {f"{label}, one": ask(strategy.run, loss) for label, loss in losses.items()}


def a_step(tf, ask):
    kinds = ("NONE", "SUM", "MEAN", "ONLY_FIRST_REPLICA")
    return {kind: ask(_step, tf, getattr(tf.VariableAggregation, kind)) for kind in kinds}


def _step(tf, aggregation):
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        v = tf.Variable([1.0, 2.0], aggregation=aggregation)
        optimizer = tf.keras.optimizers.SGD(1.0)
        loss = tf.keras.losses.MeanSquaredError()

    def step():
        with tf.GradientTape() as tape:
            found = loss(tf.constant(ACTUAL), tf.constant(GUESSED) * v)
        optimizer.apply_gradients([(tape.gradient(found, v), v)])
        return found

    total = strategy.reduce("SUM", strategy.run(step), axis=None)
    return {"loss": total, "variable": v.read_value()}
