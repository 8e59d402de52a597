"""The workers that train together, and which one this process is: a resolver's answers, checked."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

from evenfeed.cluster.resolvers.resolver import ClusterResolver
from evenfeed.cluster.resolvers.spec import ClusterSpec
from evenfeed.core.errors import described
from evenfeed.core.lazy import logging

_JOBS: Final = ("chief", "worker", "evaluator", "ps")
_SINGLE_TASK_JOBS: Final = ("chief", "evaluator")

_NAME_THE_TASK: Final = 'set "task" in TF_CONFIG, as in {"type": "worker", "index": 0}, or the resolver\'s task_type and task_id.'


@final
@dataclass(frozen=True)
class Worker:
    """One training process, identified by its task."""

    job: str = "localhost"
    index: int = 0
    address: str = ""

    def __str__(self) -> str:
        return f"{self.job} {self.index} ({self.address})" if self.address else self.job


@final
@dataclass(frozen=True)
class Membership:
    """The workers of a strategy, chief first, and this process's position among them."""

    workers: tuple[Worker, ...] = (Worker(),)
    place: int = 0

    @property
    def worker_count(self) -> int:
        """The number of workers."""
        return len(self.workers)

    @property
    def own(self) -> Worker:
        """The worker that this process is."""
        return self.workers[self.place]

    @property
    def is_chief(self) -> bool:
        """Whether this process saves on behalf of all workers."""
        return self.place == 0


def membership_of(resolver: ClusterResolver) -> Membership:
    """Ask a resolver which workers train together.

    Without a cluster, and for an evaluator, it is this process alone. Tasks of other jobs, such as `ps`, are
    ignored.

    Raises:
        ValueError: The cluster cannot be trained on, or this process is not part of it.
    """
    spec = resolver.cluster_spec()
    if not spec:
        return Membership()
    job, index = resolver.task_type, resolver.task_id
    if job is None or index is None:
        raise _error(
            f"There is a cluster, {spec}, but it is unknown which task this process is.",
            fix=_NAME_THE_TASK,
        )
    _check_jobs(spec, job)
    if "ps" in spec.jobs:
        logging.getLogger("evenfeed").info(
            "the cluster has parameter servers (job 'ps'); synchronous training does not use them"
        )
    if job == "evaluator":
        return _evaluator(spec, index)
    workers = tuple(
        Worker(each, number, spec.task_address(each, number))
        for each in ("chief", "worker")
        if each in spec.jobs
        for number in spec.task_indices(each)
    )
    _check_addresses(workers)
    places = [(worker.job, worker.index) for worker in workers]
    if (job, index) not in places:
        raise _error(
            f"This process is {job} {index}, but the cluster has {_task_ranges(workers)}.",
            fix=_NAME_THE_TASK,
        )
    return Membership(workers, places.index((job, index)))


def _evaluator(spec: ClusterSpec, index: int) -> Membership:
    known = "evaluator" in spec.jobs and index in spec.task_indices("evaluator")
    address = spec.task_address("evaluator", index) if known else ""
    return Membership((Worker("evaluator", index, address),))


def _check_jobs(spec: ClusterSpec, job: str) -> None:
    for each in (*spec.jobs, job):
        if each not in _JOBS:
            raise _error(
                f"The job must be one of {', '.join(_JOBS)}, but got {each!r}.",
                fix='call the job of the training processes "worker".',
            )
    if job == "ps":
        raise _error(
            "This process is a parameter server, which synchronous training does not use.",
            fix='start it as "worker", or remove the tasks of the job "ps".',
        )
    for each in _SINGLE_TASK_JOBS:
        if each in spec.jobs and spec.num_tasks(each) > 1:
            raise _error(
                f"The cluster can have only one task of the job {each!r}, but has {spec.num_tasks(each)}.",
                fix=f"keep one {each}, and make the others workers.",
            )


def _check_addresses(workers: Sequence[Worker]) -> None:
    for job in ("chief", "worker"):
        found = [worker.index for worker in workers if worker.job == job]
        if found != list(range(len(found))):
            raise _error(
                f"The tasks of the job {job!r} have the indices {found}.",
                fix="list all of them, starting from 0: each worker must know the others.",
            )
    if len(workers) < 2:
        return
    for address, count in Counter(worker.address for worker in workers).items():
        if count > 1:
            same = ", ".join(f"{w.job} {w.index}" for w in workers if w.address == address)
            raise _error(
                f"Several workers have the address {address}: {same}.",
                fix="give each worker its own address; on one machine, its own port.",
            )
    for worker in workers:
        if not worker.address.rpartition(":")[2].isdigit() or worker.address.startswith(":"):
            raise _error(
                f"The address of {worker.job} {worker.index} is {worker.address!r}.",
                fix='write the host, a colon and the port: "host0:2222".',
            )


def _task_ranges(workers: Sequence[Worker]) -> str:
    counts = Counter(worker.job for worker in workers)
    return " and ".join(
        f"{job} 0" if count == 1 else f"{job} 0 to {count - 1}" for job, count in counts.items()
    )


def _error(what: str, *, fix: str) -> ValueError:
    return ValueError(described(what, fix=fix))
