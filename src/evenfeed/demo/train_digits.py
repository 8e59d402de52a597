"""Trains a classifier of handwritten digits on several replicas. A whole program: copy it and change it.

It needs optax and tqdm. Ctrl-C saves the model and the position in the data, and --resume continues with the very
next batch: no row is lost or repeated.
"""

import argparse
import json
import os
import signal
import sys
import threading
import time
from importlib.resources import files
from pathlib import Path
from zipfile import BadZipFile

import jax
import jax.numpy as jnp
import numpy as np
import optax
from tqdm import tqdm

import evenfeed as tf

REPLICAS = 4  # on a machine without GPUs or TPUs
BATCH = 64  # rows per step, over all replicas
DIGITS = files("evenfeed.demo") / "digits.npz"  # handwritten digits of 8 x 8 pixels
ROWS, TRAINING_ROWS = 1797, 1437  # the other rows are for the test


def main(command: list[str]) -> bool:
    """Train, and print the accuracy on the test rows. Returns False if Ctrl-C stopped it."""
    given = parsed(command)
    stop = stop_on_ctrl_c()
    sys.stdout.reconfigure(line_buffering=True)  # so that a log shows each line at once
    strategy = several_replicas()
    optimizer = optax.adam(4e-3)

    def step(params, state, images, labels):
        """One step on one replica, which gets its own part of the batch."""
        gradient = jax.value_and_grad(loss_of, has_aux=True)
        (loss, correct), gradients = gradient(params, images, labels)
        # Sums over all replicas, divided by the number of rows: every row counts the same, even in
        # a short last batch, of which the replicas get parts of different sizes.
        replica = tf.distribute.get_replica_context()
        gradients, sums = replica.all_reduce("SUM", (gradients, (loss, correct, len(labels))))
        gradients = jax.tree.map(lambda gradient: gradient / sums[2], gradients)
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, sums

    @tf.function  # one compiled program for all replicas
    def train_step(params, state, images, labels):
        return strategy.run(step, args=(params, state, images, labels))

    params = initial_params()
    state = optimizer.init(params)
    position = {"epochs": given.epochs, "step": 0}
    if given.resume:
        (params, state), position = load(given.file, (params, state))
    training, test = datasets(position["epochs"])
    steps = strategy.experimental_distribute_dataset(training)
    iterator = iter(steps)
    if given.resume:
        iterator.set_state(position["data"])
        print(f"resumed after step {position['step']} of {len(steps)}")

    with Progress(strategy, position, len(steps)) as progress:
        for images, labels in iterator:
            progress.show_parts(images, labels)
            params, state, sums = train_step(params, state, images, labels)
            progress.update(*map(float, sums))
            if stop.is_set():
                break
    if stop.is_set():
        position |= {"step": progress.step, "data": iterator.get_state()}
        save(given.file, (params, state), position)
        print(f"stopped after step {progress.step} of {len(steps)}, and saved {given.file}")
        print("to continue, add --resume")
        return False
    print(f"test accuracy: {test_accuracy(strategy, params, test):.1%}")
    return True


def parsed(command: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=command[0], description=__doc__)
    parser.add_argument("--epochs", type=int, default=20, help="default: %(default)s")
    parser.add_argument("--resume", action="store_true", help="continue where Ctrl-C stopped")
    parser.add_argument("--file", default="digits-state.npz", help="default: %(default)s")
    given = parser.parse_args(command[1:])
    if given.epochs < 1:
        parser.error(f"--epochs must be at least 1, but got {given.epochs}")
    if not Path(given.file).absolute().parent.is_dir():
        parser.error(f"--file must be in an existing folder, but got {given.file}")
    return given


def several_replicas() -> tf.distribute.Strategy:
    if len(tf.config.list_physical_devices()) == 1:  # the CPU alone: split it
        cpu = tf.config.list_physical_devices("CPU")[0]
        one = tf.config.LogicalDeviceConfiguration()
        tf.config.set_logical_device_configuration(cpu, [one] * REPLICAS)
    return tf.distribute.MirroredStrategy()


# --- data ------------------------------------------------------------------------------------


def datasets(epochs: int) -> tuple[tf.data.Dataset, tf.data.Dataset]:
    """Return the batches to train on, for all epochs, and the batches of the test."""
    training, test = digits()
    training = tf.data.Dataset.from_tensor_slices(training)
    training = training.shuffle(ROWS, seed=1).random_map(shifted, seed=2)
    test = tf.data.Dataset.from_tensor_slices(test)
    return training.batch(BATCH).repeat(epochs), test.batch(BATCH)


def digits() -> tuple[tuple, tuple]:
    """Return images and labels: those to train on, and those of the test."""
    with np.load(str(DIGITS)) as file:
        images = file["images"].astype(np.float32) / 16
        labels = file["labels"].astype(np.int32)
    is_test = np.arange(ROWS) % 5 == 0
    return (images[~is_test], labels[~is_test]), (images[is_test], labels[is_test])


def shifted(key, image, label):
    """Move an image by up to one pixel, in each epoch by another."""
    top, left = jax.random.randint(key, (2,), 0, 3)
    return jax.lax.dynamic_slice(jnp.pad(image, 1), (top, left), (8, 8)), label


# --- model -----------------------------------------------------------------------------------


def initial_params() -> dict:
    """Return the weights of two convolutions of 3 x 3 pixels and of a dense layer."""
    shapes = {"conv0": (3, 3, 1, 32), "conv1": (3, 3, 32, 64), "dense": (4 * 4 * 64, 10)}
    he = jax.nn.initializers.he_normal()
    return {
        name: he(jax.random.key(seed), shape) for seed, (name, shape) in enumerate(shapes.items())
    }


def logits_of(params, images):
    x = images[..., None]
    for name, stride in (("conv0", 1), ("conv1", 2)):
        x = jax.lax.conv_general_dilated(
            x, params[name], (stride, stride), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC")
        )
        x = jax.nn.relu(x)
    return x.reshape(len(x), -1) @ params["dense"]


def loss_of(params, images, labels):
    """Return the sum of the losses, and how many images were recognised."""
    logits = logits_of(params, images)
    losses = optax.softmax_cross_entropy_with_integer_labels(logits, labels)
    return losses.sum(), (logits.argmax(axis=1) == labels).sum()


def test_accuracy(strategy: tf.distribute.Strategy, params, test: tf.data.Dataset) -> float:
    @tf.function
    def test_step(params, images, labels):
        _, correct = strategy.run(loss_of, args=(params, images, labels))
        return strategy.reduce("SUM", correct, axis=None)

    steps = strategy.experimental_distribute_dataset(test)
    correct = sum(int(test_step(params, images, labels)) for images, labels in steps)
    return correct / (ROWS - TRAINING_ROWS)


# --- stopping and resuming -------------------------------------------------------------------


def stop_on_ctrl_c() -> threading.Event:
    """Let Ctrl-C wait until model and data are at the same position. A second one does not wait."""
    stop = threading.Event()

    def handler(*_) -> None:
        stop.set()
        signal.signal(signal.SIGINT, signal.default_int_handler)

    signal.signal(signal.SIGINT, handler)
    return stop


def save(path: str, model, position: dict) -> None:
    with open(f"{path}.part", "wb") as file:
        leaves = jax.device_get(jax.tree.leaves(model))
        np.savez(file, *leaves, position=json.dumps(position))
    os.replace(f"{path}.part", path)  # complete, or the file before it stays


def load(path: str, model) -> tuple:
    if not Path(path).exists():
        sys.exit(f"{path} does not exist: start without --resume, and stop with Ctrl-C.")
    try:
        with open(path, "rb") as file, np.load(file) as saved:
            leaves = [saved[f"arr_{number}"] for number in range(len(saved.files) - 1)]
            position = json.loads(str(saved["position"]))
    except (OSError, EOFError, ValueError, KeyError, BadZipFile):
        sys.exit(f"{path} is not a state that this program saved.")
    return jax.tree.unflatten(jax.tree.structure(model), leaves), position


# --- what you see ----------------------------------------------------------------------------


class Progress:
    """Prints a line after each epoch and, on a terminal, keeps a live bar below."""

    def __init__(self, strategy: tf.distribute.Strategy, position: dict, steps: int) -> None:
        self.strategy, self.step, self.steps = strategy, position["step"], steps
        self.epoch_steps = steps // position["epochs"]
        self.bar = tqdm(
            total=steps,
            initial=self.step,
            bar_format="{desc}|{bar}|ETA {remaining}{postfix}",
            leave=False,
            disable=None,  # unless this is a terminal
            file=sys.stdout,
        )
        self.shown: set[int] = set()
        self.begin_epoch()

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_) -> None:
        self.bar.close()

    def begin_epoch(self) -> None:
        self.sums = np.zeros(3)  # of the losses, the recognised images, and the rows
        self.times, self.began = [], time.perf_counter()

    def update(self, *sums: float) -> None:
        """Add the sums of a step, and show where training stands."""
        self.step += 1
        self.sums += sums
        loss, correct, rows = self.sums
        began, self.began = self.began, time.perf_counter()
        self.times.append(self.began - began)
        seconds = np.median(self.times) * len(self.times)  # the few steps that compile do not count
        rate = len(self.times) / seconds
        epoch = f"epoch {-(-self.step // self.epoch_steps):2}"
        text = f"loss {loss / rows:.3f}, accuracy {correct / rows:.1%}"
        text += f", {rate:.0f} steps/s, {rows / seconds:,.0f} rows/s"
        self.bar.set_description_str(epoch, refresh=False)
        self.bar.set_postfix_str(text, refresh=False)
        self.bar.update()
        if self.step % self.epoch_steps == 0:
            left = (self.steps - self.step) / rate
            tqdm.write(f"{epoch}: {text}, ETA {left:.0f} s")
            self.begin_epoch()

    def show_parts(self, images, labels) -> None:
        """Print what each replica got, at the first step and at the first short batch."""
        parts = self.strategy.experimental_local_results((images, labels))
        rows = sum(len(part) for _, part in parts)
        if rows in self.shown:
            return
        tqdm.write(f"step {self.step + 1}: a batch of {rows} rows on {len(parts)} replicas")
        for replica, (_, part) in enumerate(parts):
            digits = " ".join(map(str, part.tolist()))
            tqdm.write(f"  replica {replica} got {len(part):2} rows: {digits}")
        if not self.shown:  # the first digit of each replica, once
            for line in zip(*(drawn(part[0]) for part, _ in parts if len(part)), strict=True):
                tqdm.write("    ".join(line).rstrip())
        self.shown.add(rows)


def drawn(image) -> list[str]:
    shades = np.array(list(" .:+#@"))
    return ["".join(np.repeat(row, 2)) for row in shades[(np.asarray(image) * 5).astype(int)]]


if __name__ == "__main__":
    main(sys.argv)
