"""Keras models that train with datasets and strategies, in the manner of TensorFlow's tutorials.

The weights are set from NumPy and nothing is random, so the losses are comparable.
"""

import os
import tempfile
from typing import Any

import numpy as np

_RANDOM = np.random.default_rng(7)
_IMAGES = _RANDOM.normal(size=(52, 6, 6, 1)).astype(np.float32)
_LABELS = _RANDOM.integers(0, 3, size=52).astype(np.int32)
_WEIGHTS = [
    *((0.3 * _RANDOM.normal(size=(3, 3, 1, 4))).astype(np.float32), np.zeros(4, np.float32)),
    *((0.3 * _RANDOM.normal(size=(16, 3))).astype(np.float32), np.zeros(3, np.float32)),
]

# TensorFlow's own curves. Both answer whether theirs is the same to 1e-4.
_CURVES = {
    "loss": [1.381821, 1.188851, 1.139452, 1.130514],
    "val_loss": [1.254924, 1.17449, 1.166773, 1.159693],
}


def _convolutional(tf: Any) -> Any:
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [
            layers.Input((6, 6, 1)),
            layers.Conv2D(4, 3, activation="relu"),
            layers.MaxPooling2D(),
            layers.Flatten(),
            layers.Dense(3),
        ]
    )
    model.set_weights(_WEIGHTS)
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(tf.keras.optimizers.Adam(0.01), loss, metrics=["accuracy"])
    return model


def _rounded(values: Any) -> list[float]:
    return [round(float(value), 3) for value in np.ravel(values)]


def _history(history: Any) -> dict[str, list[float]]:
    return {name: _rounded(values) for name, values in history.history.items()}


def distributed_keras(tf: Any, ask: Any) -> dict[str, Any]:
    """The tutorial "Distributed training with Keras": callbacks, a schedule, and a model that is loaded again."""
    folder = tempfile.mkdtemp()
    data = tf.data.Dataset.from_tensor_slices((_IMAGES, _LABELS))
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    size = 8 * strategy.num_replicas_in_sync
    train = data.take(48).cache().batch(size)
    check = data.batch(size)  # the last batch has 4 rows
    rates: list[float] = []
    with strategy.scope():
        model = _convolutional(tf)

    class Rates(tf.keras.callbacks.Callback):
        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            rates.append(float(model.optimizer.learning_rate.numpy()))

    prefix = os.path.join(folder, "ckpt_{epoch}.weights.h5")
    callbacks = [
        tf.keras.callbacks.ModelCheckpoint(filepath=prefix, save_weights_only=True),
        tf.keras.callbacks.LearningRateScheduler(lambda epoch: 0.01 if epoch < 2 else 0.002),
        tf.keras.callbacks.TensorBoard(log_dir=os.path.join(folder, "logs")),
        Rates(),
    ]
    history = model.fit(train, epochs=4, callbacks=callbacks, validation_data=check, verbose=0)
    saved = sorted(name for name in os.listdir(folder) if "ckpt" in name)
    model.load_weights(os.path.join(folder, "ckpt_4.weights.h5"))
    path = os.path.join(folder, "my_model.keras")
    model.save(path)
    plain = tf.keras.models.load_model(path)
    with strategy.scope():
        replicated = tf.keras.models.load_model(path)
    return {
        "history": _history(history),
        "curves": {
            name: bool(np.allclose(history.history[name], curve, rtol=0, atol=1e-4))
            for name, curve in _CURVES.items()
        },
        "rates": _rounded(rates),
        "saved": saved,
        "evaluated": _rounded(model.evaluate(check, verbose=0)),
        "loaded": _rounded(plain.evaluate(check, verbose=0)),
        "loaded in the scope": _rounded(replicated.evaluate(check, verbose=0)),
        "predicted": _rounded(replicated.predict(check.map(lambda x, y: x), verbose=0)[-3:]),
    }


def fit_arguments(tf: Any, ask: Any) -> dict[str, Any]:
    """What `fit` accepts beside a dataset, on one device."""
    data = tf.data.Dataset.from_tensor_slices((_IMAGES, _LABELS)).batch(16)
    weights = np.linspace(0.5, 1.5, 52).astype(np.float32)
    weighted = tf.data.Dataset.from_tensor_slices((_IMAGES, _LABELS, weights)).batch(16)

    def fitted(data: Any, **settings: Any) -> Any:
        return ask(lambda: _history(_convolutional(tf).fit(data, verbose=0, **settings)))

    return {
        "epochs": fitted(data, epochs=2),
        "class weights": fitted(data, class_weight={0: 1.0, 1: 2.0, 2: 0.5}),
        "sample weights": fitted(weighted),
        "infinite": fitted(data.repeat(), epochs=2, steps_per_epoch=3),
        "validation steps": fitted(data, validation_data=data, validation_steps=2),
        "targets": fitted(data, y=_LABELS),
        "both weights": fitted(weighted, class_weight={0: 1.0}),
        "iterator": fitted(iter(data)),
    }
