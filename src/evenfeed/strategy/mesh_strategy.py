"""`MeshStrategy`: synchronous training on a mesh with data axes, and with axes inside of each replica."""

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, cast

from evenfeed.core.conversion import shortened
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.lazy_jax import jax
from evenfeed.replicas.mesh import Replicas
from evenfeed.strategy.strategy import Strategy
from evenfeed.strategy.xla_threads import ensure_threads

# Returns the `PartitionSpec` of a variable, given its name and shape; None if it is not split.
Rule: TypeAlias = Callable[[str, tuple[int, ...]], Any]


class MeshStrategy(Strategy):
    """Synchronous training on the devices of a mesh. The points of its data axes are the replicas.

    Each replica has the devices along the other axes: fsdp, tensor, sequence. `run` compiles a step once for all replicas, and
    leaves these axes to XLA: split variables over them with `Variable(..., sharding=)` or a rule, and values with
    `jax.lax.with_sharding_constraint` in the step. A mesh with data axes only is that of a `MirroredStrategy`.

    Args:
        mesh: A `jax.sharding.Mesh` with Auto axes, in this process.
        data_axes: The axes that split the rows of a global batch, from the outermost.
        variable_sharding: A function of a variable's name and shape that returns its `PartitionSpec` over the other axes, or
            None. It is called for variables without a sharding of their own.

    Raises:
        InvalidArgumentError: The mesh does not have these axes, or they have a single point.

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
        ensure_threads(sum(device.platform == "cpu" for device in mesh.devices.flat))
        replicas = Replicas(mesh, axes)
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
    if len({device.process_index for device in given.devices.flat}) > 1:
        raise NotImplementedError(
            described(
                "A MeshStrategy runs in one process, but the mesh has devices of several.",
                fix="train with jax.jit, and feed it with dataset.distribute(sharding), which any number of processes can "
                "use; or use a MultiWorkerMirroredStrategy.",
            )
        )
