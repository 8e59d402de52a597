"""`MeshStrategy`: synchronous training on a mesh with data axes, and with axes inside of each replica."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias, cast

from evenfeed.cluster.host_exchange import StoredAgreement, topic_name
from evenfeed.cluster.survival.guarded_waits import guarded
from evenfeed.core.conversion import shortened
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.lazy_jax import jax
from evenfeed.dataset import Dataset
from evenfeed.feeding.conversation import Topic
from evenfeed.feeding.input_options import InputContext
from evenfeed.feeding.meshes.global_batches import batches_from_function, batches_of_processes
from evenfeed.replicas.device_shards import check_devices
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.session import Session
from evenfeed.strategy.devices import device_string
from evenfeed.strategy.multi_worker import connect
from evenfeed.strategy.strategy import Strategy
from evenfeed.strategy.xla_threads import ensure_threads

# Returns the `PartitionSpec` of a variable, given its name and shape; None if it is not split.
Rule: TypeAlias = Callable[[str, tuple[int, ...]], Any]


class MeshStrategy(Strategy):
    """Synchronous training on the devices of a mesh. The points of its data axes are the replicas.

    Each replica has the devices along the other axes: fsdp, tensor, sequence. `run` compiles a step once for all replicas, and
    leaves these axes to XLA: split values over them with `jax.lax.with_sharding_constraint` in the step. Split variables over any
    axes with `Variable(..., sharding=)` or a rule.

    Args:
        mesh: A `jax.sharding.Mesh` with Auto axes. If its devices are in several processes, all of them run the same program.
        data_axes: The axes that split the rows of a global batch, from the outermost.
        variable_sharding: A function of a variable's name and shape that returns its `PartitionSpec` over any axes, or
            None. It is called for variables without a sharding of their own.

    Raises:
        InvalidArgumentError: The mesh does not have these axes, or lacks the devices of a process.

    Examples:
        >>> import jax
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> from jax.sharding import Mesh, PartitionSpec as P
        >>> mesh = Mesh(np.array(jax.devices()[:4]).reshape(2, 2), ("data", "tensor"))
        >>> strategy = tf.distribute.MeshStrategy(mesh)
        >>> with strategy.scope():
        ...     w = tf.Variable(tf.ones([4, 6]), sharding=P(None, "tensor"))
        >>> @tf.function
        ... def step(x):
        ...     return tf.reduce_sum(x @ w.value())
        >>> (x,) = strategy.experimental_distribute_dataset(tf.data.Dataset.from_tensor_slices(np.eye(4, dtype="f")).batch(4))
        >>> strategy.reduce("SUM", strategy.run(step, args=(x,)), axis=None).tolist()
        24.0
    """

    shares_variables = True

    def __init__(
        self,
        mesh: Any,
        data_axes: str | Sequence[str] = ("data",),
        variable_sharding: Rule | None = None,
    ) -> None:
        _check_mesh(mesh)
        axes = (data_axes,) if isinstance(data_axes, str) else tuple(data_axes)
        here = jax.process_index()
        cpus = [d for d in mesh.devices.flat if d.platform == "cpu" and d.process_index == here]
        ensure_threads(len(cpus))
        replicas = _replicas(mesh, axes)
        if variable_sharding is not None and not callable(variable_sharding):
            raise TypeError(
                described(
                    f"variable_sharding must be a function, but got {shortened(variable_sharding)}.",
                    fix='pass lambda name, shape: PartitionSpec(None, "tensor") if len(shape) == 2 else None.',
                )
            )
        self._rule = variable_sharding
        super().__init__(replicas)

    @property
    def data_axes(self) -> tuple[str, ...]:
        """The axes that split the rows of a global batch."""
        return self._replicas.axes

    @property
    def is_chief(self) -> bool:
        return self._replicas.worker == 0

    def device_name(self, device: Any) -> str:
        if not self._replicas.spans:
            return super().device_name(device)
        return device_string(device, job="worker", task=device.process_index)

    def experimental_distribute_dataset(self, dataset: Dataset, options: object = None) -> Any:
        if not self._replicas.may_be_shared:
            return super().experimental_distribute_dataset(dataset, options)
        return batches_of_processes(dataset, self._replicas, options)

    def distribute_datasets_from_function(
        self, dataset_fn: Callable[[InputContext], Dataset], options: object = None
    ) -> Any:
        if not self._replicas.may_be_shared:
            return super().distribute_datasets_from_function(dataset_fn, options)
        return batches_from_function(dataset_fn, self._replicas, options)

    experimental_distribute_datasets_from_function = distribute_datasets_from_function

    def variable_sharding(self, name: str, shape: tuple[int, ...]) -> Any:
        return None if self._rule is None else self._rule(name, shape)


def _check_mesh(mesh: Any) -> None:
    if not isinstance(mesh, jax.sharding.Mesh):
        raise TypeError(
            described(
                f"mesh must be a jax.sharding.Mesh, but got {shortened(mesh)}.",
                fix='make one: jax.sharding.Mesh(np.array(jax.devices()).reshape(4, 2), ("data", "tensor")).',
            )
        )
    given = cast("Any", mesh)
    auto = jax.sharding.AxisType.Auto
    if any(kind is not auto for kind in given.axis_types):
        raise InvalidArgumentError(
            f"The axes of the mesh must be Auto, but are {given.axis_types}.",
            fix="pass axis_types=(jax.sharding.AxisType.Auto,) * "
            f"{len(given.axis_names)} to jax.make_mesh, or make a jax.sharding.Mesh(devices, names).",
        )
    check_devices(given)
    processes = {device.process_index for device in given.devices.flat}
    missing = set(range(jax.process_count())) - processes
    if missing and len(processes) > 1:
        raise InvalidArgumentError(
            f"The mesh has devices of the processes {sorted(processes)}, but none of {sorted(missing)}.",
            fix="make the mesh of devices of all processes, from jax.devices().",
        )


def _replicas(mesh: Any, axes: tuple[str, ...]) -> Replicas:
    replicas = Replicas(mesh, axes)
    if not replicas.spans:
        return replicas
    agreement = StoredAgreement(replicas.worker, len(replicas.workers))
    conversation = Topic(topic_name(), agreement).next_pass()
    replicas = Replicas(mesh, axes, Session(conversation.exchange))
    if replicas.devices[0].platform == "cpu":
        guarded(partial(connect, replicas))
    return replicas
