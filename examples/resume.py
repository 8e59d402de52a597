"""Trains over lanes. Kill it at any time, run it again on another number of workers: it continues at the exact row.

    python examples/resume.py --folder run
    evenfeed run --workers 2 examples/resume.py --folder run
    evenfeed run --workers 4 examples/resume.py --folder run

Each step saves the model and the position in the data, in one file that is replaced at once. So a kill loses at most the
step that was not saved, and no row is read twice or left out. The rows and the losses of the steps do not depend on the
number of workers: 1, 2 and 4 divide the four lanes.
"""

import argparse
import json
import os
import tempfile
import time
from pathlib import Path

import jax
import jax.numpy as jnp

import evenfeed as tf

FILES, LINES, BATCH, LANES, EPOCHS, RATE = 8, 25, 12, 4, 2, 0.2


def main() -> None:
    strategy = tf.distribute.MultiWorkerMirroredStrategy()  # first of all: before anything computes
    folder, pause = arguments()
    checkpoint = folder / "checkpoint.json"
    with strategy.scope():
        w = tf.Variable(0.0, aggregation=tf.VariableAggregation.SUM, name="w")

    def step(numbers):
        x = numbers / 1000
        loss, gradient = jax.value_and_grad(lambda w: jnp.sum((w * x - 3 * x) ** 2) / BATCH)(
            w.value()
        )
        w.assign_sub(RATE * gradient)  # SUM: what the replicas of all workers subtract is added up
        return jnp.sum(numbers), loss

    @tf.function
    def train_step(numbers):
        total, loss = strategy.run(step, args=(numbers,))
        add = tf.distribute.ReduceOp.SUM
        return strategy.reduce(add, total, axis=None), strategy.reduce(add, loss, axis=None)

    steps = iter(strategy.experimental_distribute_dataset(numbers_in(folder)))
    done = 0
    if checkpoint.exists():
        saved = json.loads(checkpoint.read_text())
        done = saved["step"]
        w.assign(saved["w"])
        steps.set_state(saved["data"])
        print(f"continuing after step {done}", flush=True)
    for numbers in steps:
        total, loss = train_step(numbers)
        done += 1
        state = steps.get_state()  # on all workers: each knows only its own lanes
        if strategy.cluster_resolver.task_id in (None, 0):
            save(checkpoint, {"step": done, "w": float(w.numpy()), "data": state})
            print(f"step {done}: sum {int(total)}, loss {float(loss):.4f}", flush=True)
        time.sleep(pause)
    print(f"done after step {done}: w {float(w.numpy()):.4f}", flush=True)


def numbers_in(folder: Path) -> tf.data.Dataset:
    """Return the numbers in text files, filtered and shuffled, in batches of lanes."""
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.LANES
    options.experimental_distribute.num_lanes = LANES
    numbers = tf.data.TextLineDataset(files_in(folder)).map(
        lambda line: tf.strings.to_number(line, tf.int32)
    )
    kept = numbers.filter(lambda number: number % 7 != 0).shuffle(20, seed=1).repeat(EPOCHS)
    return kept.batch(BATCH).with_options(options)


def files_in(folder: Path) -> list[str]:
    """Return the files with the data. Writes those that do not exist yet."""
    paths = [folder / f"{number}.txt" for number in range(FILES)]
    for number, path in enumerate(paths):
        if not path.exists():
            rows = range(number * LINES, (number + 1) * LINES)
            replace(path, "".join(f"{row}\n" for row in rows))
    return [str(path) for path in paths]


def save(path: Path, content: dict[str, object]) -> None:
    replace(path, json.dumps(content))


def replace(path: Path, text: str) -> None:
    """Write a file that is always whole: as before, or as it is now."""
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False) as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(file.name, path)


def arguments() -> tuple[Path, float]:
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", help="where the data and the checkpoint are")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds to wait after each step")
    given = parser.parse_args()
    folder = Path(given.folder or tempfile.mkdtemp(prefix="evenfeed-resume-"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder, given.pause


if __name__ == "__main__":
    main()
