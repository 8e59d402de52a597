"""The TensorFlow 1 API (`tf.compat.v1`): its strategies, `ConfigProto` and `GPUOptions`."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, final

from evenfeed.cluster.communication_options import CommunicationImplementation, CommunicationOptions
from evenfeed.cluster.resolvers.resolver import ClusterResolver
from evenfeed.core.conversion import shortened
from evenfeed.core.errors import described
from evenfeed.dataset import Dataset
from evenfeed.replicas.reduce.reduce_op import ReduceOp
from evenfeed.strategy.mirrored import MirroredStrategy
from evenfeed.strategy.multi_worker import MultiWorkerMirroredStrategy
from evenfeed.strategy.one_device import OneDeviceStrategy
from evenfeed.strategy.strategy import Strategy


@final
@dataclass
class GPUOptions:
    """GPU options of a session. They have no effect: use JAX's settings, such as `XLA_PYTHON_CLIENT_PREALLOCATE`.

    Attributes:
        allow_growth: Whether memory is allocated on demand instead of all at once.
        per_process_gpu_memory_fraction: The fraction of a GPU's memory to use.
        visible_device_list: The numbers of the GPUs to use, separated by commas.
    """

    allow_growth: bool = False
    per_process_gpu_memory_fraction: float = 0.0
    visible_device_list: str = ""


@final
@dataclass
class ConfigProto:
    """The configuration of a session, for programs that pass one. It has no effect, because there are no sessions.

    Attributes:
        allow_soft_placement: Whether operations may run on another device than the named one.
        log_device_placement: Whether to log where operations run.
        inter_op_parallelism_threads: The number of operations to run in parallel.
        intra_op_parallelism_threads: The number of threads for one operation.
        isolate_session_state: Whether sessions keep their state separate.
        device_count: The number of devices of each type to use.
        gpu_options: GPU options.

    Examples:
        >>> import evenfeed as tf
        >>> config = tf.compat.v1.ConfigProto(allow_soft_placement=True)
        >>> config.gpu_options.allow_growth = True
        >>> strategy = tf.compat.v1.distribute.MirroredStrategy(["CPU:0"])
        >>> strategy.update_config_proto(config).isolate_session_state
        True
    """

    allow_soft_placement: bool = False
    log_device_placement: bool = False
    inter_op_parallelism_threads: int = 0
    intra_op_parallelism_threads: int = 0
    isolate_session_state: bool = False
    device_count: dict[str, int] = field(default_factory=dict[str, int])
    gpu_options: GPUOptions = field(default_factory=GPUOptions)


class StrategyV1(Strategy):
    """A strategy with the additional methods of TensorFlow 1."""

    def reduce(
        self, reduce_op: ReduceOp | str, value: Any, axis: Any = None, valid: Any = None
    ) -> Any:
        """Reduce a per-replica value to a single value, by default over the replicas only."""
        return super().reduce(reduce_op, value, axis, valid)

    def experimental_run(self, fn: Callable[..., Any], input_iterator: Any = None) -> Any:
        """Call a function on each replica, with the next element of an iterator if one is passed.

        Args:
            fn: The function. It takes the element, or no arguments without an iterator.
            input_iterator: An iterator with `get_next()`.

        Examples:
            >>> import evenfeed as tf
            >>> strategy = tf.compat.v1.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
            >>> dataset = strategy.experimental_distribute_dataset(tf.data.Dataset.range(4).batch(4))
            >>> strategy.experimental_run(lambda x: x * 10, iter(dataset)).array.tolist()
            [0, 10, 20, 30]
        """
        return self.run(fn, () if input_iterator is None else (input_iterator.get_next(),))

    def experimental_make_numpy_dataset(self, numpy_input: Any, session: object = None) -> Dataset:
        """Make a dataset from the rows of an array or of a structure of arrays. A list is stacked."""
        del session
        return Dataset.from_tensor_slices(numpy_input)

    def update_config_proto(self, config_proto: ConfigProto) -> ConfigProto:
        """Return a copy of a session configuration with `isolate_session_state` set. It has no effect."""
        if not isinstance(config_proto, ConfigProto):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(
                described(
                    f"config_proto must be a ConfigProto, but got {shortened(config_proto)}.",
                    fix="pass evenfeed.compat.v1.ConfigProto().",
                )
            )
        updated = deepcopy(config_proto)
        updated.isolate_session_state = True
        return updated


class MirroredStrategyV1(StrategyV1, MirroredStrategy):
    """Synchronous training on several devices of this machine; see `MirroredStrategy`."""


@final
class OneDeviceStrategyV1(StrategyV1, OneDeviceStrategy):
    """One replica on one named device; see `OneDeviceStrategy`."""


class MultiWorkerMirroredStrategyV1(StrategyV1, MultiWorkerMirroredStrategy):
    """Synchronous training on the devices of several workers; see `MultiWorkerMirroredStrategy`.

    Args:
        communication: The implementation of collectives between workers.
        cluster_resolver: Lists the workers. By default, reads TF_CONFIG.
    """

    def __init__(
        self,
        communication: CommunicationImplementation = CommunicationImplementation.AUTO,
        cluster_resolver: ClusterResolver | None = None,
    ) -> None:
        super().__init__(cluster_resolver, CommunicationOptions(implementation=communication))


for _kind in (
    StrategyV1,
    MirroredStrategyV1,
    MultiWorkerMirroredStrategyV1,
    OneDeviceStrategyV1,
):
    _kind.__name__ = _kind.__qualname__ = _kind.__name__.removesuffix("V1")
