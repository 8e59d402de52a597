"""`ClusterSpec`: the jobs of a cluster, and the addresses of their tasks."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast, final

from evenfeed.core.conversion import shortened
from evenfeed.core.errors import described
from evenfeed.formats.example.example_protos import message_class

_Tasks = dict[int, str]


@final
class ClusterSpec:
    """The jobs of a cluster by name, each with the network addresses of its tasks.

    Args:
        cluster: A dict from job names to lists of addresses, or to dicts from task indices to addresses if
            only some are known; or another ClusterSpec, or a `ClusterDef` message.

    Raises:
        TypeError: `cluster` is something else.

    Examples:
        >>> import evenfeed as tf
        >>> spec = tf.train.ClusterSpec({"worker": ["host0:2222", "host1:2222"]})
        >>> spec.num_tasks("worker"), spec.task_address("worker", 1)
        (2, 'host1:2222')
    """

    __slots__ = ("_jobs",)

    def __init__(
        self, cluster: "Mapping[str, Sequence[str] | Mapping[int, str]] | ClusterSpec | Any"
    ) -> None:
        self._jobs: dict[str, _Tasks] = _jobs_of(cluster)

    def as_dict(self) -> dict[str, Any]:
        """Return a dict from jobs to lists of addresses, or to dicts by task index if some are missing."""
        return {job: _as_list(tasks) for job, tasks in self._jobs.items()}

    def as_cluster_def(self) -> Any:
        """Return the cluster as a `ClusterDef` message, with jobs sorted by name."""
        message = message_class("ClusterDef")()
        for job, tasks in sorted(self._jobs.items()):
            message.job.add(name=job, tasks=tasks)
        return message

    @property
    def jobs(self) -> list[str]:
        """The names of the jobs."""
        return list(self._jobs)

    def num_tasks(self, job_name: str) -> int:
        """Return the number of known tasks of a job."""
        return len(self._tasks(job_name))

    def task_indices(self, job_name: str) -> list[int]:
        """Return the indices of a job's tasks, in order."""
        return sorted(self._tasks(job_name))

    def task_address(self, job_name: str, task_index: int) -> str:
        """Return the address of a task.

        Raises:
            ValueError: There is no such job, or no such task in it.
        """
        tasks = self._tasks(job_name)
        if task_index not in tasks:
            raise ValueError(
                described(
                    f"The job {job_name!r} has no task {task_index!r}.",
                    fix=f"its tasks are {shortened(sorted(tasks))}.",
                )
            )
        return tasks[task_index]

    def job_tasks(self, job_name: str) -> list[str | None]:
        """Return a job's addresses by task index, None for unknown ones."""
        tasks = self._tasks(job_name)
        return [tasks.get(index) for index in range(max(tasks, default=-1) + 1)]

    def _tasks(self, job: str) -> _Tasks:
        if job not in self._jobs:
            names = ", ".join(map(repr, self._jobs)) or "no jobs"
            raise ValueError(
                described(f"The cluster has no job {job!r}.", fix=f"it has {names}."),
            )
        return self._jobs[job]

    def __bool__(self) -> bool:
        return bool(self._jobs)

    def __eq__(self, other: object) -> bool:
        return self._jobs == (other._jobs if isinstance(other, ClusterSpec) else other)

    __hash__ = None  # pyright: ignore[reportAssignmentType] - as in TensorFlow: it equals a dict

    def __repr__(self) -> str:
        return f"ClusterSpec({dict(sorted(self.as_dict().items()))})"

    def __reduce__(self) -> tuple[Any, ...]:
        return ClusterSpec, (self._jobs,)


def _jobs_of(cluster: object) -> dict[str, _Tasks]:
    if isinstance(cluster, ClusterSpec):
        return {job: dict(tasks) for job, tasks in sorted(cluster._jobs.items())}  # pyright: ignore[reportPrivateUsage]
    if isinstance(cluster, dict):
        given = cast("dict[Any, Any]", cluster)
        return {_text(job, "A job's name"): _tasks_of(job, tasks) for job, tasks in given.items()}
    if type(cluster).__name__ == "ClusterDef":  # ours, or TensorFlow's own
        message: Any = cluster
        return {job.name: dict(job.tasks) for job in message.job}
    raise TypeError(
        described(
            f"A cluster must be a dict from jobs to addresses, but got {shortened(cluster)}.",
            fix='write {"worker": ["host0:2222", "host1:2222"]}.',
        )
    )


def _tasks_of(job: str, tasks: object) -> _Tasks:
    pairs: Iterable[tuple[Any, Any]]
    if isinstance(tasks, (list, tuple)):
        pairs = enumerate(cast("Sequence[Any]", tasks))
    elif isinstance(tasks, dict):
        pairs = cast("dict[Any, Any]", tasks).items()
    else:
        raise TypeError(
            described(
                f"The tasks of the job {job!r} must be a list of addresses, or a dict from task indices to "
                f"addresses, but got {shortened(tasks)}.",
                fix=f"write {{{job!r}: [{shortened(tasks)}]}}.",
            )
        )
    return {int(index): _text(address, "A task's address") for index, address in pairs}


def _text(given: object, what: str) -> str:
    if isinstance(given, (str, bytes)):
        return given if isinstance(given, str) else given.decode()
    raise TypeError(
        described(
            f"{what} must be text, but got {shortened(given)}.", fix='write "worker", "host:2222".'
        )
    )


def _as_list(tasks: _Tasks) -> list[str] | _Tasks:
    if tasks and max(tasks) + 1 == len(tasks):
        return [tasks[index] for index in range(len(tasks))]
    return dict(sorted(tasks.items()))
