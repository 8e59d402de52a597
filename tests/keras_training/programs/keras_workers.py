"""Trains Keras models on several workers, as TensorFlow's tutorial does. The test compares the results."""

import json
import sys
from typing import Any

import numpy as np

import evenfeed as tf


def main() -> None:
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    random = np.random.default_rng(0)
    x = random.normal(size=(43, 3)).astype(np.float32)
    y = x.sum(1, keepdims=True)
    start = [random.normal(size=(3, 1)).astype(np.float32), np.zeros(1, np.float32)]
    dataset = tf.data.Dataset.from_tensor_slices((x, y)).batch(16)  # the last batch has 11 rows

    def made() -> Any:
        model = tf.keras.Sequential([tf.keras.Input((3,)), tf.keras.layers.Dense(1)])
        model.compile(tf.keras.optimizers.SGD(0.1), "mse", metrics=["mae"])
        return model

    with strategy.scope():
        model = made()
    drawn = model.get_weights()[0].tolist()  # nobody set a seed
    seen: dict[str, Any] = {}

    def restart() -> None:
        model.set_weights(start)

    restart()
    seen["fit"] = model.fit(dataset, epochs=3, verbose=0, validation_data=dataset).history
    seen["weights"] = [weight.tolist() for weight in model.get_weights()]
    seen["evaluate"] = model.evaluate(dataset, verbose=0, return_dict=True)
    seen["predict"] = model.predict(dataset, verbose=0).tolist()
    seen["predict arrays"] = model.predict(x, batch_size=16, verbose=0).tolist()
    restart()
    seen["arrays"] = model.fit(x, y, 16, 3, shuffle=False, verbose=0).history
    restart()
    distributed = strategy.experimental_distribute_dataset(dataset)
    seen["distributed"] = model.fit(distributed, epochs=3, verbose=0).history
    restart()
    seen["batches"] = [
        model.train_on_batch(x[rows], y[rows], return_dict=True)
        for rows in (slice(0, 16), slice(16, 31))
    ]
    seen["predict on batch"] = model.predict_on_batch(x[:3]).tolist()
    restart()
    shuffled = model.fit(x, y, 43, 2, verbose=0).history  # every row once: its loss has no order
    try:
        model.fit(iter([(x, y)]), verbose=0)
        refused = ""
    except (TypeError, ValueError) as error:
        refused = str(error).partition(",")[0]
    own = {"drawn": drawn, "shuffled": shuffled, "refused": refused}
    sys.stdout.write(f"seen {json.dumps({'same': seen, 'own': own})}\n")


main()
