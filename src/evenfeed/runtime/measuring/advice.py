"""Finds the stage that everything waits for, and says what to change."""

import os
from collections.abc import Sequence
from typing import Final, NamedTuple

from evenfeed.runtime.measuring.stage_stats import StageStats

# A program that waits for data for a smaller part of its time has nothing to gain.
KEEPS_UP: Final = 0.05
# Threads that work for this part of the time are all busy.
_ALL_BUSY: Final = 0.75
# Code that computes for a smaller part of its time waits, and not only for a core of a busy machine.
_COMPUTES: Final = 0.25

_CACHE: Final = ".cache() after it, if its results fit in memory"
_IN_PARALLEL: Final = "num_parallel_calls=tf.data.AUTOTUNE"
_PREFETCH: Final = ".prefetch(tf.data.AUTOTUNE) at the end"
_CHANGES: Final = {
    "from_generator": "make keys in the generator, and load them in .map(load, num_parallel_calls=tf.data.AUTOTUNE)",
    "flat_map": f".interleave(..., {_IN_PARALLEL}) instead",
    "interleave": f"{_IN_PARALLEL}, or fewer and larger files",
    "shuffle": ".shuffle before .map and .batch, where elements are smaller, or a smaller buffer_size",
    "filter": "filter before the costly stages, or drop the rows once, and save() what is left",
    "batch": "batches of fewer bytes: smaller dtypes, and casts in the training step",
    "padded_batch": ".bucket_by_sequence_length, so that batches have less padding",
}


class Advice(NamedTuple):
    """What to change.

    Attributes:
        stage: The number of the stage that everything waits for; None if there is none.
        text: One sentence.
    """

    stage: int | None
    text: str


def advised(
    stages: Sequence[StageStats], seconds: float, waited: float, *, copying: float | None = None
) -> Advice:
    """Return what to change.

    Args:
        stages: The stages of the pipeline.
        seconds: The time in which they were measured.
        waited: The time in which the program waited for data.
        copying: The time in which steps were copied to the devices, by a thread that reads ahead; None if there is
            no such thread.
    """
    if not seconds or not stages:
        return Advice(None, "Nothing has been read yet.")
    share = waited / seconds
    if share < KEEPS_UP:
        return Advice(None, f"Input keeps up: the program waited for data {share:.0%} of the time.")
    slowest = max(stages, key=lambda stage: stage.busy_seconds / stage.workers)
    busy = slowest.busy_seconds / seconds
    if copying is not None and copying / seconds > busy / slowest.workers:
        return Advice(
            None,
            f"Copying steps to the devices takes {copying / seconds:.0%} of the time, and the program waits for it "
            f"{share:.0%} of the time: smaller dtypes, with casts in the training step.",
        )
    ahead = copying is not None or any(stage.method == "prefetch" for stage in stages[-2:])
    if not ahead and waited < seconds - waited:
        return Advice(
            slowest.number,
            f"Nothing is read while the program computes, so it waits {share:.0%} of the time, mostly for "
            f"{_named(slowest)}: {_PREFETCH}.",
        )
    return Advice(slowest.number, f"{_effect(slowest, seconds, share)}: {_change(slowest, busy)}.")


def _effect(stage: StageStats, seconds: float, share: float) -> str:
    who = (
        "everything waits for it"
        if share > _ALL_BUSY
        else f"the program waits {share:.0%} of the time"
    )
    return f"{_named(stage)} {_use(stage, seconds)} and {who}"


def _use(stage: StageStats, seconds: float) -> str:
    """Return what a stage does with its time."""
    cores, busy = available_cores(), stage.busy_seconds
    if _waits(stage):
        return f"waits {1 - (stage.cpu_seconds or 0.0) / busy:.0%} of its time instead of computing"
    if not stage.inputs and stage.cpu_seconds is None:  # a source may wait for a disk or a server
        return f"is busy {busy / seconds:.0%} of the time"
    used = (busy if stage.cpu_seconds is None else stage.cpu_seconds) / seconds
    if cores == 1:
        return f"keeps the core {used:.0%} busy"
    return f"keeps {round(min(used, cores), 1):g} of {cores} cores busy"


def _waits(stage: StageStats) -> bool:
    """Return True if the Python code of a stage mostly waits, such as for a file or a server.

    Threads that compute take turns, because they share the interpreter, and processes if there are fewer cores. That is
    not the wait that is meant here.
    """
    if stage.cpu_seconds is None:
        return False
    is_elsewhere = stage.kind == "processes"
    turns = max(1.0, stage.workers / available_cores()) if is_elsewhere else stage.workers
    return turns * stage.cpu_seconds < _COMPUTES * stage.busy_seconds


def _named(stage: StageStats) -> str:
    return f"{stage.name} at {stage.line}" if stage.line else stage.name


def _change(stage: StageStats, busy: float) -> str:
    if stage.way:
        return _change_of_function(stage, busy)
    if stage.inputs or stage.method in _CHANGES:
        return _CHANGES.get(stage.method, _PREFETCH)
    return f".interleave over several files with {_IN_PARALLEL}, or {_CACHE}"


def _change_of_function(stage: StageStats, busy: float) -> str:
    """Return what makes a user function faster: more workers, as long as there are cores."""
    cores = available_cores()
    if stage.way == "vectorised":
        return f"it is compiled already; {_CACHE}, or do it in the training step"
    if _waits(stage) and stage.method in {"map", "filter"}:
        return _more_at_once(stage)
    if stage.method != "map":
        return _CHANGES.get(stage.method, _CACHE)
    if stage.is_tuned:
        return (
            "processes=True, because threads are no faster: its Python code holds the interpreter"
        )
    if stage.workers < cores:
        return f"num_parallel_calls={cores}"
    if stage.kind != "processes" and busy > _ALL_BUSY * stage.workers:
        return f"processes=True, if its Python code holds the interpreter; or {_CACHE}"
    return _CACHE


def _more_at_once(stage: StageStats) -> str:
    """Return how to call a function that waits for more elements at once, which takes no more cores."""
    if stage.method == "filter":
        return f"find what to keep in .map(..., {_IN_PARALLEL}), and filter by the result"
    if stage.kind == "processes":
        return f"{_IN_PARALLEL} without processes=True"
    if stage.is_tuned:  # threads are no faster: all calls wait for the same thing
        return _CACHE
    return f"num_parallel_calls={2 * stage.workers}" if stage.workers > 1 else _IN_PARALLEL


def available_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0))
