"""Who trains together, and which of them this process is: what a strategy asks of a resolver, checked."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, final

from evenfeed.cluster.resolvers.resolver import ClusterResolver
from evenfeed.cluster.resolvers.spec import ClusterSpec
from evenfeed.core.errors import described
from evenfeed.core.lazy import logging

_JOBS: Final = ("chief", "worker", "evaluator", "ps")
_LONE: Final = ("chief", "evaluator")

_HOW_TO_SAY: Final = 'set "task" in TF_CONFIG, as in {"type": "worker", "index": 0}, or the resolver\'s task_type and task_id.'


@final
@dataclass(frozen=True)
class Worker:
    """One process that trains, by its task."""

    job: str = "localhost"
    index: int = 0
    address: str = ""

    def __str__(self) -> str:
        return f"{self.job} {self.index} ({self.address})" if self.address else self.job


@final
@dataclass(frozen=True)
class Membership:
    """The workers of a strategy, the chief first, and this process's place among them."""

    workers: tuple[Worker, ...] = (Worker(),)
    place: int = 0

    @property
    def worker_count(self) -> int:
        """How many workers there are."""
        return len(self.workers)

    @property
    def own(self) -> Worker:
        """This process."""
        return self.workers[self.place]

    @property
    def is_chief(self) -> bool:
        """Whether this process is the one that saves for all."""
        return self.place == 0


def membership_of(resolver: ClusterResolver) -> Membership:
    """Find out who trains together.

    Without a cluster it is this process alone, and so it is for an evaluator. Tasks of other jobs such as
    `ps` do not count.

    Raises:
        ValueError: The cluster cannot train, or this process is none of it.
    """
    spec = resolver.cluster_spec()
    if not spec:
        return Membership()
    job, index = resolver.task_type, resolver.task_id
    if job is None or index is None:
        raise _refused(
            f"There is a cluster, {spec}, but nothing says which task this process is.",
            fix=_HOW_TO_SAY,
        )
    _check_jobs(spec, job)
    if "ps" in spec.jobs:
        logging.getLogger("evenfeed").info(
            "the cluster names parameter servers (job 'ps'); synchronous training does not use them"
        )
    if job == "evaluator":
        return _alone(spec, index)
    workers = tuple(
        Worker(each, number, spec.task_address(each, number))
        for each in ("chief", "worker")
        if each in spec.jobs
        for number in spec.task_indices(each)
    )
    _check_addresses(workers)
    places = [(worker.job, worker.index) for worker in workers]
    if (job, index) not in places:
        raise _refused(
            f"This process is {job} {index}, but the cluster has {_said(workers)}.", fix=_HOW_TO_SAY
        )
    return Membership(workers, places.index((job, index)))


def _alone(spec: ClusterSpec, index: int) -> Membership:
    known = "evaluator" in spec.jobs and index in spec.task_indices("evaluator")
    address = spec.task_address("evaluator", index) if known else ""
    return Membership((Worker("evaluator", index, address),))


def _check_jobs(spec: ClusterSpec, job: str) -> None:
    for each in (*spec.jobs, job):
        if each not in _JOBS:
            raise _refused(
                f"The job {each!r} is none of {', '.join(_JOBS)}.",
                fix='name the job of the processes that train "worker".',
            )
    if job == "ps":
        raise _refused(
            "This process is a parameter server, which synchronous training has no use for.",
            fix='start it as "worker", or leave the tasks of the job "ps" out.',
        )
    for each in _LONE:
        if each in spec.jobs and spec.num_tasks(each) > 1:
            raise _refused(
                f"The cluster has {spec.num_tasks(each)} tasks of the job {each!r}.",
                fix=f"name one {each}, and let the others be workers.",
            )


def _check_addresses(workers: Sequence[Worker]) -> None:
    for job in ("chief", "worker"):
        found = [worker.index for worker in workers if worker.job == job]
        if found != list(range(len(found))):
            raise _refused(
                f"The tasks of the job {job!r} have the indices {found}.",
                fix="name all of them, counted from 0: each worker must know the others.",
            )
    if len(workers) < 2:
        return
    for address, count in Counter(worker.address for worker in workers).items():
        if count > 1:
            same = ", ".join(f"{w.job} {w.index}" for w in workers if w.address == address)
            raise _refused(
                f"Several workers have the address {address}: {same}.",
                fix="give each an address of its own; on one machine another port.",
            )
    for worker in workers:
        if not worker.address.rpartition(":")[2].isdigit() or worker.address.startswith(":"):
            raise _refused(
                f"The address of {worker.job} {worker.index} is {worker.address!r}.",
                fix='write the host, a colon and the port: "host0:2222".',
            )


def _said(workers: Sequence[Worker]) -> str:
    counts = Counter(worker.job for worker in workers)
    return " and ".join(
        f"{job} 0" if count == 1 else f"{job} 0 to {count - 1}" for job, count in counts.items()
    )


def _refused(what: str, *, fix: str) -> ValueError:
    return ValueError(described(what, fix=fix))
