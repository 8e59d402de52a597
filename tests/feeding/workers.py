"""Several workers in one process, which exchange messages in memory."""

import json
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from tests.plans.batched import pieces_of, rows_of

from evenfeed.core.batch_split import Share
from evenfeed.core.errors import CancelledError
from evenfeed.dataset import plan_of
from evenfeed.feeding.conversation import Topic
from evenfeed.feeding.host_steps import HostSteps, Pieces
from evenfeed.feeding.reading import BatchReading, ElementReading, WorkerInput
from evenfeed.plan.node import Node

MANY = 400


class InMemory:
    """Exchanges messages between workers in threads, and counts them."""

    def __init__(self, workers: int) -> None:
        self.said: dict[str, dict[int, str]] = {}
        self.forgotten: set[tuple[int, str]] = set()
        self._workers = workers
        self._heard = threading.Condition()

    def seen_by(self, worker: int) -> "_Seat":
        return _Seat(self, worker)

    def exchange(
        self, worker: int, key: str, said: str, is_closed: Callable[[], bool]
    ) -> list[str]:
        with self._heard:
            answers = self.said.setdefault(key, {})
            assert worker not in answers, f"{key} was used twice by worker {worker}"
            answers[worker] = said
            self._heard.notify_all()
            while len(answers) < self._workers:
                if is_closed():
                    raise CancelledError("closed")
                assert self._heard.wait(20) or is_closed(), f"{key}: only {sorted(answers)} spoke"
            for other in range(self._workers):
                assert (other, key) not in self.forgotten, f"{other} forgot {key} too early"
            return [answers[number] for number in range(self._workers)]


class _Seat:
    def __init__(self, memory: InMemory, worker: int) -> None:
        self._memory = memory
        self._worker = worker

    def exchange(self, key: str, said: str, is_closed: Callable[[], bool]) -> list[str]:
        return self._memory.exchange(self._worker, key, said, is_closed)

    def forget(self, key: str) -> None:
        assert self._worker in self._memory.said[key]
        assert (self._worker, key) not in self._memory.forgotten, f"{key} was forgotten twice"
        self._memory.forgotten.add((self._worker, key))


def worker_of(share: Share, memory: InMemory, name: str = "input") -> WorkerInput:
    return WorkerInput(share, Topic(name, memory.seen_by(share.worker)))


def on_all(workers: int, run: Callable[[int], Any]) -> list[Any]:
    """Run a function for all workers concurrently, and return the results."""
    with ThreadPoolExecutor(workers) as pool:
        return [future.result(60) for future in [pool.submit(run, w) for w in range(workers)]]


def reading(make: Callable[[int], Any], share: Share, memory: InMemory) -> BatchReading:
    return BatchReading(plan_of(make(share.worker)), worker_of(share, memory))


def all_pieces(
    steps: HostSteps, replicas: int, many: int = MANY, told: list[Any] | None = None
) -> list[list[Any]]:
    """Return the first column of each step, for each replica of a worker.

    Args:
        steps: The steps.
        replicas: The number of the worker's replicas.
        many: The largest number of steps to read.
        told: Collects, for each step, the number of rows that this worker expects on each replica of all
            workers; a single number if it expects the same on all.
    """
    found: list[list[Any]] = []
    while len(found) < many:
        try:
            column: Any = steps.read()[0]
        except StopIteration:
            break
        size = len(column) // replicas
        pieces = (
            column
            if isinstance(column, list)
            else [column[i * size : (i + 1) * size] for i in range(replicas)]
        )
        found.append([piece.tolist() for piece in pieces])
        if told is not None:
            is_told = isinstance(column, Pieces)
            told.append([shape[0] for shape in column.shapes] if is_told else [len(pieces[0])])
    steps.close()
    return found


def check_told(found: list[list[list[Any]]], told: list[list[list[int]]]) -> None:
    """Check that the workers' knowledge of each other's rows is correct."""
    for steps, said in zip(zip(*found, strict=True), zip(*told, strict=True), strict=True):
        lengths = [len(piece) for worker in steps for piece in worker]
        for counts in said:
            assert counts == lengths or counts * len(lengths) == lengths


def fed(
    make: Callable[[int], Any],
    workers: int,
    replicas: int = 1,
    memory: InMemory | None = None,
    many: int = MANY,
) -> list[list[list[Any]]]:
    """Return the steps of every worker, each a list of its replicas' rows."""
    memory = memory or InMemory(workers)
    told: list[list[Any]] = [[] for _ in range(workers)]

    def run(worker: int) -> list[list[Any]]:
        share = Share(worker, workers, replicas)
        return all_pieces(reading(make, share, memory).steps(), replicas, many, told[worker])

    found = on_all(workers, run)
    check_told(found, told)
    return found


def fed_from_function(
    make: Callable[[int], Any], workers: int, replicas: int = 1, many: int = MANY
) -> list[list[list[Any]]]:
    """Return the steps of every worker if each has a dataset of per-replica batches."""
    memory = InMemory(workers)
    told: list[list[Any]] = [[] for _ in range(workers)]

    def run(worker: int) -> list[list[Any]]:
        share = Share(worker, workers, replicas)
        reader = ElementReading([plan_of(make(worker))], worker_of(share, memory))
        return all_pieces(reader.steps(), replicas, many, told[worker])

    found = on_all(workers, run)
    check_told(found, told)
    return found


class Cluster:
    """An iteration over a plan on several workers in one process, each in a thread of its own while it reads.

    Args:
        make: Returns the plan.
        workers: The number of workers.
        replicas: The number of replicas of each.
        in_turn: Whether workers take the pieces of a batch in turn; otherwise each takes some in a row.
    """

    def __init__(
        self, make: Callable[[], Node], workers: int, replicas: int, *, in_turn: bool = True
    ) -> None:
        memory = InMemory(workers)
        self._workers, self._replicas, self._in_turn = workers, replicas, in_turn
        self.readings = [
            BatchReading(make(), self._worker(Share(worker, workers, replicas), memory))
            for worker in range(workers)
        ]
        self._steps = on_all(workers, lambda worker: self.readings[worker].steps())

    def _worker(self, share: Share, memory: InMemory) -> WorkerInput:
        return WorkerInput(share) if share.workers == 1 else worker_of(share, memory)

    def read(self, most: int = MANY) -> list[list[Any]]:
        """Return the rows of the next global batches."""
        each = on_all(self._workers, lambda worker: self._read(worker, most))
        return [self._joined(parts) for parts in zip(*each, strict=True)]

    def _read(self, worker: int, most: int) -> list[list[Any]]:
        found: list[list[Any]] = []
        while len(found) < most:
            try:
                columns = self._steps[worker].read()
            except StopIteration:
                break
            pieces = [pieces_of(c, self._replicas) for c in columns if c is not None]
            found.append([rows_of(list(parts)) for parts in zip(*pieces, strict=True)])
        return found

    def _joined(self, parts: Sequence[list[Any]]) -> list[Any]:
        places = [(w, r) for w in range(self._workers) for r in range(self._replicas)]
        if self._in_turn:
            places.sort(key=lambda place: place[1])
        return [row for worker, replica in places for row in parts[worker][replica]]

    def state(self) -> Any:
        """Return the state, which must be the same on all workers, as from JSON."""
        states = on_all(
            self._workers,
            lambda w: json.dumps(self.readings[w].saving.joined(self._steps[w].state())),
        )
        assert len(set(states)) == 1, states
        return json.loads(states[0])

    def restore(self, state: Any) -> None:
        on_all(
            self._workers, lambda w: self._steps[w].restore(self.readings[w].saving.part_of(state))
        )

    def close(self) -> None:
        for steps in self._steps:
            steps.close()
