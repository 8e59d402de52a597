"""Trains the digits of `evenfeed demo` on several workers. With --kill, one of them is lost on the way.

Every worker writes down what each of its replicas got at each step. At the end, the first worker adds that up: no row may
be lost or repeated. `evenfeed run` starts the workers, and starts those that are left again.
"""

import argparse
import json
import os
import signal
import sys
import time
from collections import Counter
from pathlib import Path

import jax
import numpy as np
import optax

import evenfeed as tf
from evenfeed.demo.report import Start, Taken, page_of, waiting
from evenfeed.demo.train_digits import (
    BATCH,
    TRAINING_ROWS,
    digits,
    initial_params,
    load,
    loss_of,
    save,
    test_accuracy,
)

SAVE_EVERY = 10  # steps


def main(command: list[str]) -> None:
    strategy = tf.distribute.MultiWorkerMirroredStrategy()  # first of all: before anything computes
    given = parsed(command)
    resolver = strategy.cluster_resolver
    worker, workers = (
        resolver.task_id or 0,
        len(resolver.cluster_spec().as_dict().get("worker", [0])),
    )
    optimizer = optax.adam(4e-3)

    def step(params, state, images, labels):
        gradient = jax.value_and_grad(loss_of, has_aux=True)
        (loss, _), gradients = gradient(params, images, labels)
        replica = tf.distribute.get_replica_context()
        gradients, sums = replica.all_reduce("SUM", (gradients, (loss, len(labels))))
        gradients = jax.tree.map(lambda gradient: gradient / sums[1], gradients)
        updates, state = optimizer.update(gradients, state, params)
        return optax.apply_updates(params, updates), state, sums

    @tf.function
    def train_step(params, state, images, labels):
        return strategy.run(step, args=(params, state, images, labels))

    def own(values):
        """Return what this worker holds of values that are the same on all of them."""
        return strategy.experimental_local_results(values)[0]

    training, test = numbered(given.epochs)
    steps = strategy.experimental_distribute_dataset(training)
    iterator = iter(steps)
    params = initial_params()
    model = params, optimizer.init(params)
    start, done = 1, 0
    if given.file.exists():
        model, position = load(str(given.file), model)
        start, done = position["start"] + 1, position["step"]
        iterator.set_state(position["data"])
    if worker == 0:
        print(f"start {start}: workers: {workers}, after step {done} of {len(steps)}", flush=True)

    with (given.folder / f"start-{start}-worker-{worker}.jsonl").open("w") as log:
        began = time.perf_counter()
        for numbers, images, labels in iterator:
            waited = time.perf_counter() - began
            *model, (loss, count) = train_step(*model, images, labels)
            loss, done = float(own(loss) / own(count)), done + 1
            rows = [part.tolist() for part in strategy.experimental_local_results(numbers)]
            seconds, began = time.perf_counter() - began, time.perf_counter()
            print(json.dumps([done, workers, rows, loss, waited, seconds]), file=log, flush=True)
            if done % SAVE_EVERY == 0:
                data = iterator.get_state()  # the same on all workers
                if worker == 0:
                    save(str(given.file), own(model), {"start": start, "step": done, "data": data})
            if given.kill and start == 1 and worker == workers - 1 and done == len(steps) // 2 + 3:
                print(f"worker {worker} dies after step {done}: kill -9", flush=True)
                os.kill(os.getpid(), signal.SIGKILL)
    accuracy = test_accuracy(strategy, own(model[0]), test)
    if worker == 0:
        summary(given, len(steps), accuracy)


def parsed(command: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=command[0], description=__doc__)
    parser.add_argument("--folder", type=Path, default=Path(), help="for the logs and the report")
    parser.add_argument("--epochs", type=int, default=4, help="default: %(default)s")
    parser.add_argument("--kill", action="store_true", help="kill a worker in the middle")
    given = parser.parse_args(command[1:])
    given.file = given.folder / "state.npz"
    return given


def numbered(epochs: int) -> tuple[tf.data.Dataset, tf.data.Dataset]:
    """Return the batches to train on, with the number of each row, and the batches of the test."""
    (images, labels), test = digits()
    rows = tf.data.Dataset.from_tensor_slices(
        (np.arange(len(labels), dtype=np.int32), images, labels)
    )
    batches = rows.shuffle(len(labels), seed=1).batch(BATCH).repeat(epochs)
    return batches, tf.data.Dataset.from_tensor_slices(test).batch(BATCH)


def summary(given: argparse.Namespace, steps: int, accuracy: float) -> None:
    """Print what happened to the rows, and write the report."""
    starts = starts_in(given.folder)
    check_rows(starts, given.epochs, steps // given.epochs)
    again = sum(len(start.steps) for start in starts) - steps
    print(
        f"{steps} steps in {len(starts)} starts; {again} steps were taken again from the last save"
    )
    print(f"the devices waited for input {waiting(starts):.1%} of the time")
    print(f"test accuracy: {accuracy:.1%}")
    report = given.folder / "report.html"
    report.write_text(page_of(starts, BATCH, accuracy), encoding="utf-8")
    print(f"report: {report}")


def check_rows(starts: list[Start], epochs: int, epoch_steps: int) -> None:
    """Exit with an error unless each row was used exactly once in each epoch."""
    final = {step.number: step for start in starts for step in start.steps}  # the last one counts
    for epoch in range(epochs):
        numbers = range(epoch * epoch_steps + 1, (epoch + 1) * epoch_steps + 1)
        seen = Counter(row for n in numbers for part in final[n].rows for row in part)
        if seen != Counter(range(TRAINING_ROWS)):
            sys.exit(f"epoch {epoch + 1}: rows were lost or repeated: {seen}")
        print(f"epoch {epoch + 1}: {TRAINING_ROWS:,} rows, each exactly once")


def starts_in(folder: Path) -> list[Start]:
    """Return the steps of each start, with what the replicas of all its workers got."""
    starts = []
    for number in range(1, 1 + len(list(folder.glob("start-*-worker-0.jsonl")))):
        steps: dict[int, Taken] = {}
        for path in sorted(folder.glob(f"start-{number}-worker-*.jsonl")):
            for line in path.read_text().splitlines():
                step = Taken(*json.loads(line))
                if step.number in steps:
                    steps[step.number].rows.extend(step.rows)
                else:
                    steps[step.number] = step
        starts.append(Start(number, list(steps.values())))
    return starts


if __name__ == "__main__":
    try:
        main(sys.argv)
    except (
        tf.errors.UnavailableError
    ) as error:  # another worker is gone: `evenfeed run` starts again
        sys.exit(str(error).splitlines()[0])
