"""Trains Keras models on several workers, as TensorFlow's tutorial does. The test compares the results."""

import json
import sys
from pathlib import Path
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
    seen["custom loop"] = custom_loop(strategy, model, distributed)
    seen["checkpoint"] = checkpointed(strategy, model, distributed, made)
    restart()
    shuffled = model.fit(x, y, 43, 2, verbose=0).history  # every row once: its loss has no order
    try:
        model.fit(iter([(x, y)]), verbose=0)
        refused = ""
    except (TypeError, ValueError) as error:
        refused = str(error).partition(",")[0]
    files = saved(strategy, model, dataset, seen, made)
    own = {"drawn": drawn, "shuffled": shuffled, "refused": refused, "files": files}
    sys.stdout.write(f"seen {json.dumps({'same': seen, 'own': own})}\n")


def custom_loop(strategy: Any, model: Any, distributed: Any) -> Any:
    """Train with a tape, as TensorFlow's tutorial on custom loops over workers does."""
    with strategy.scope():
        optimizer, mean = tf.keras.optimizers.Adam(0.1), tf.keras.metrics.Mean()

    def step(x: Any, y: Any) -> Any:
        with tf.GradientTape() as tape:
            each = tf.reduce_mean((model(x, training=True) - y) ** 2, axis=1)
            loss = tf.nn.compute_average_loss(each, global_batch_size=16)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        mean.update_state(each)
        return loss

    @tf.function
    def train(batch: Any) -> Any:
        return strategy.reduce("SUM", strategy.run(step, args=batch), axis=None)

    losses = [float(train(batch)) for _ in range(2) for batch in distributed]
    return [losses, float(mean.result()), [weight.tolist() for weight in model.get_weights()]]


def checkpointed(strategy: Any, model: Any, distributed: Any, made: Any) -> Any:
    """Save a model, its optimizer and the position on all workers, restore them, and return what is the same."""

    def objects(model: Any) -> Any:
        return {"model": model, "optimizer": model.optimizer, "data": iter(distributed)}

    def values(model: Any) -> Any:
        return [np.asarray(one).tolist() for one in [*model.weights, *model.optimizer.variables]]

    def rows(step: Any) -> Any:
        parts = strategy.experimental_local_results(step[0])
        return [np.asarray(part).tolist() for part in parts]

    first = objects(model)
    next(first["data"])
    path = tf.train.Checkpoint(**first).save(f"{sys.argv[1]}-with-data/ckpt")
    with strategy.scope():
        other = made()
    again = objects(other)
    tf.train.Checkpoint(**again).restore(path).assert_consumed()
    return [
        values(other) == values(model),
        int(other.optimizer.iterations) > 0,
        rows(next(again["data"])) == rows(next(first["data"])),
    ]


def saved(strategy: Any, model: Any, dataset: Any, seen: dict[str, Any], made: Any) -> Any:
    """Save, load and restore models in a folder that the workers share."""
    shared = Path(sys.argv[1])
    worker = strategy.cluster_resolver.task_id or 0
    model.set_weights([np.full((3, 1), 0.5), np.zeros(1)])
    path = shared / ("model.keras" if strategy.is_chief else f"temporary_{worker}.keras")
    model.save(path)
    seen["saved"] = model.evaluate(dataset, verbose=0)  # all workers have saved when this ends
    with strategy.scope():
        model = tf.keras.models.load_model(shared / "model.keras")
    seen["loaded"] = model.evaluate(dataset, verbose=0)

    def callbacks(folder: str) -> list[Any]:
        best = str(shared / f"{folder}_{worker}.weights.h5")
        kinds = tf.keras.callbacks
        return [
            kinds.ModelCheckpoint(best, "loss", save_best_only=True, save_weights_only=True),
            kinds.BackupAndRestore(str(shared / folder), delete_checkpoint=folder == "second"),
            kinds.TensorBoard(str(shared / f"logs_{worker}")),
        ]

    first = model.fit(dataset, epochs=2, verbose=0, callbacks=callbacks("first"))
    seen["epochs"] = first.epoch
    with strategy.scope():
        again = made()
    resumed = again.fit(dataset, epochs=3, verbose=0, callbacks=callbacks("first"))
    seen["resumed epochs"] = resumed.epoch
    seen["resumed"] = resumed.history
    again.fit(dataset, epochs=4, verbose=0, callbacks=callbacks("second"))
    files = sorted(file.name for file in shared.iterdir())
    lost = tf.keras.callbacks.BackupAndRestore(
        str(shared / ("first" if strategy.is_chief else "lost"))
    )
    try:
        again.fit(dataset, verbose=0, callbacks=[lost])
    except tf.errors.InvalidArgumentError as error:
        files.append(str(error).partition(" find ")[0])
    return files


main()
