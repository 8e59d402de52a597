"""The cluster of a Slurm step, from the variables that Slurm sets."""

import os
import re
from collections.abc import Iterator, Mapping

from evenfeed.cluster.resolvers.resolver import ClusterResolver
from evenfeed.cluster.resolvers.spec import ClusterSpec
from evenfeed.core.errors import described
from evenfeed.core.lazy import subprocess


class SlurmClusterResolver(ClusterResolver):
    """Reads the hosts and tasks of a Slurm step: SLURM_PROCID and SLURM_STEP_NUM_TASKS, _NODELIST, _TASKS_PER_NODE.

    `task_type` and `task_id` are known after the first `cluster_spec()`.

    Args:
        jobs: The number of tasks of each job, sorted by job name; by default all tasks are workers.
        port_base: The port of a host's first task; its other tasks use the following ports.
        gpus_per_node: By default from CUDA_VISIBLE_DEVICES or nvidia-smi.
        gpus_per_task: By default the GPUs of a node divided by its tasks.
        tasks_per_node: A number, or one for each host; by default from Slurm.
        auto_set_gpu: Set CUDA_VISIBLE_DEVICES to the GPUs of this task, in `cluster_spec()`.
        rpc_layer: The protocol.

    Raises:
        RuntimeError: A variable is missing, there are too few GPUs, or `jobs` does not match the number of tasks.

    Examples:
        >>> import os
        >>> import evenfeed as tf
        >>> os.environ |= {"SLURM_PROCID": "1", "SLURM_STEP_NUM_TASKS": "2",
        ...     "SLURM_STEP_NODELIST": "node[08-09]", "SLURM_STEP_TASKS_PER_NODE": "1(x2)"}
        >>> resolver = tf.distribute.cluster_resolver.SlurmClusterResolver(gpus_per_node=0)
        >>> resolver.cluster_spec()
        ClusterSpec({'worker': ['node08:8888', 'node09:8888']})
        >>> resolver.get_task_info()
        ('worker', 1)
        >>> for name in [name for name in os.environ if name.startswith("SLURM_")]:
        ...     del os.environ[name]
    """

    def __init__(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
        self,
        jobs: Mapping[str, int] | None = None,
        port_base: int = 8888,
        gpus_per_node: int | None = None,
        gpus_per_task: int | None = None,
        tasks_per_node: int | Mapping[str, int] | None = None,
        auto_set_gpu: bool = True,
        rpc_layer: str = "grpc",
    ) -> None:
        self._rank = int(_variable("PROCID"))
        self._jobs = {"worker": int(_variable("STEP_NUM_TASKS"))} if jobs is None else dict(jobs)
        self._port_base = port_base
        self._tasks = _tasks_by_host(tasks_per_node)
        max_tasks = max(self._tasks.values())
        self._gpus_per_node = _gpus_here() if gpus_per_node is None else gpus_per_node
        self._gpus_per_task = (
            self._gpus_per_node // max_tasks if gpus_per_task is None else gpus_per_task
        )
        self._auto_set_gpu = auto_set_gpu
        self._rpc_layer = rpc_layer
        self._check(max_tasks)

    def _check(self, max_tasks: int) -> None:
        if max_tasks * self._gpus_per_task > self._gpus_per_node:
            raise RuntimeError(
                described(
                    f"{max_tasks} tasks with {self._gpus_per_task} GPUs each need more than the "
                    f"{self._gpus_per_node} GPUs of a node.",
                    fix="pass a smaller gpus_per_task, or start fewer tasks per node.",
                )
            )
        asked, have = sum(self._jobs.values()), sum(self._tasks.values())
        if asked != have:
            raise RuntimeError(
                described(
                    f"The jobs {self._jobs} have {asked} tasks, but Slurm started {have}.",
                    fix=f"make the tasks of all jobs add up to {have}, or change srun --ntasks.",
                )
            )

    def cluster_spec(self) -> ClusterSpec:
        """Return the addresses, sorted by host, and find out which task this process is."""
        addresses, start = self._addresses(), 0
        found: dict[str, list[str]] = {}
        for job, count in sorted(self._jobs.items()):
            found[job] = addresses[start : start + count]
            if start <= self._rank < start + count:
                self._task_type, self._task_id = job, self._rank - start
            start += count
        if self._auto_set_gpu and self._gpus_per_task:
            os.environ["CUDA_VISIBLE_DEVICES"] = self._own_gpus()
        return ClusterSpec(found)

    def _addresses(self) -> list[str]:
        return [
            f"{host}:{self._port_base + place}"
            for host, count in sorted(self._tasks.items())
            for place in range(count)
        ]

    def _own_gpus(self) -> str:
        places = [place for _, count in sorted(self._tasks.items()) for place in range(count)]
        first = places[self._rank] * self._gpus_per_task
        return ",".join(str(gpu) for gpu in range(first, first + self._gpus_per_task))

    def get_task_info(self) -> tuple[str | None, int | None]:
        """Return this process's job and its index there; None before the first `cluster_spec()`."""
        return self.task_type, self.task_id

    def master(
        self,
        task_type: str | None = None,
        task_id: int | None = None,
        rpc_layer: str | None = None,
    ) -> str:
        """Return the address of a task, by default this one; empty before the first `cluster_spec()`."""
        return self._task_master(task_type, task_id, rpc_layer)

    def num_accelerators(
        self,
        task_type: str | None = None,
        task_id: int | None = None,
        config_proto: object = None,
    ) -> dict[str, int]:
        """Return the number of GPUs per task, which is the same for all tasks."""
        del task_type, task_id, config_proto
        return {"GPU": self._gpus_per_task}


def hosts_in(text: str) -> list[str]:
    """Return the hosts in a Slurm host list, in order.

    Examples:
        >>> hosts_in("n[1-2],m5,o[03,08-10]")
        ['n1', 'n2', 'm5', 'o03', 'o08', 'o09', 'o10']
    """
    if not re.fullmatch(r"[^,\[\]]*(\[[\d,-]+\])?(,[^,\[\]]+(\[[\d,-]+\])?)*", text) or not text:
        raise ValueError(
            described(
                f"Not a Slurm host list: {text!r}.",
                fix='it looks like "n[1-2],m5".',
            )
        )
    parts = re.findall(r"([^,\[\]]*)(?:\[([^\]]+)\])?(?:,|$)", text)
    return [
        prefix + number
        for prefix, ranges in parts
        if prefix or ranges
        for number in (_numbers_in(ranges) if ranges else [""])
    ]


def _numbers_in(ranges: str) -> Iterator[str]:
    for one in ranges.split(","):
        first, _, last = one.partition("-")
        for number in range(int(first), int(last or first) + 1):
            yield str(number).zfill(len(first))


def counts_in(text: str) -> list[int]:
    """Return the numbers in a Slurm count list.

    Examples:
        >>> counts_in("3(x2),2,1")
        [3, 3, 2, 1]
    """
    found: list[int] = []
    for part in text.split(","):
        match = re.fullmatch(r"(\d+)(?:\(x(\d+)\))?", part)
        if match is None:
            raise ValueError(
                described(
                    f"Not a Slurm count list: {text!r}.",
                    fix='it looks like "3(x2),1".',
                )
            )
        found += [int(match[1])] * int(match[2] or 1)
    return found


def _tasks_by_host(given: int | Mapping[str, int] | None) -> dict[str, int]:
    if isinstance(given, Mapping):
        return dict(given)
    hosts = hosts_in(_variable("STEP_NODELIST"))
    if given is not None:
        return dict.fromkeys(hosts, int(given))
    return dict(zip(hosts, counts_in(_variable("STEP_TASKS_PER_NODE")), strict=False))


def _variable(name: str) -> str:
    found = os.environ.get(f"SLURM_{name}")
    if found is None:
        raise RuntimeError(
            described(
                f"The environment has no SLURM_{name}: this process is not part of a Slurm step.",
                fix="start the program with srun.",
            )
        )
    return found


def _gpus_here() -> int:
    visible = os.environ.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        return len([gpu for gpu in visible.split(",") if gpu])
    try:
        output = subprocess.run(
            ["nvidia-smi", "--list-gpus"], capture_output=True, text=True, check=True
        ).stdout
    except FileNotFoundError:  # no driver: no GPUs
        return 0
    except subprocess.CalledProcessError as error:
        raise RuntimeError(
            described(
                f"nvidia-smi failed to list the GPUs ({error}).",
                fix="pass gpus_per_node; 0 if there are none.",
            )
        ) from None
    return sum(line.startswith("GPU ") for line in output.splitlines())
