"""`ConfigProto`: what programs of TensorFlow 1 say about a session."""

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass, field
from typing import Any, final

from evenfeed.cluster.communication_options import CommunicationImplementation, CommunicationOptions
from evenfeed.cluster.resolvers.resolver import ClusterResolver
from evenfeed.core.conversion import shortened
from evenfeed.core.errors import described
from evenfeed.dataset import Dataset
from evenfeed.feeding.distributed_dataset import InputIterator
from evenfeed.feeding.distributing import distributed_from_function
from evenfeed.feeding.input_options import InputContext, InputOptions, InputReplicationMode
from evenfeed.replicas.reduce.reduce_op import ReduceOp
from evenfeed.strategy.mirrored import MirroredStrategy
from evenfeed.strategy.multi_worker import MultiWorkerMirroredStrategy
from evenfeed.strategy.one_device import OneDeviceStrategy
from evenfeed.strategy.strategy import Strategy


@final
@dataclass
class GPUOptions:
    """What a session may take of GPUs. JAX has settings of its own for that, such as `XLA_PYTHON_CLIENT_PREALLOCATE`.

    Attributes:
        allow_growth: Whether memory is taken when it is needed, and not at once.
        per_process_gpu_memory_fraction: How much of a GPU's memory to take.
        visible_device_list: Which GPUs to use, as numbers with commas.
    """

    allow_growth: bool = False
    per_process_gpu_memory_fraction: float = 0.0
    visible_device_list: str = ""


@final
@dataclass
class ConfigProto:
    """The configuration of a session, for programs that pass one on; there are no sessions, so nothing reads it.

    Attributes:
        allow_soft_placement: Whether another device may be taken than the one that was named.
        log_device_placement: Whether to say where operations run.
        inter_op_parallelism_threads: How many operations to run at a time.
        intra_op_parallelism_threads: How many threads one operation may have.
        isolate_session_state: Whether sessions share no state.
        device_count: How many devices of each type to use.
        gpu_options: What to take of GPUs.

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
    """What a strategy of TensorFlow 1 can do besides."""

    def reduce(
        self, reduce_op: ReduceOp | str, value: Any, axis: Any = None, valid: Any = None
    ) -> Any:
        """Return one value for the parts that the replicas hold, by default over the replicas alone."""
        return super().reduce(reduce_op, value, axis, valid)

    def make_dataset_iterator(self, dataset: Dataset) -> InputIterator:
        """Return an iterator over a dataset whose global batches are cut over the replicas."""
        return InputIterator(self.experimental_distribute_dataset(dataset))

    def make_input_fn_iterator(
        self,
        input_fn: Callable[[InputContext], Dataset],
        replication_mode: InputReplicationMode = InputReplicationMode.PER_WORKER,
    ) -> InputIterator:
        """Return an iterator over what a function makes: one batch for each replica; a step with fewer is dropped.

        Args:
            input_fn: Called with an InputContext; returns a dataset.
            replication_mode: PER_WORKER.
        """
        if replication_mode is not InputReplicationMode.PER_WORKER:
            raise ValueError(
                described(
                    f"The replication mode {shortened(replication_mode)} is not supported here.",
                    fix="use distribute_datasets_from_function with InputOptions.",
                )
            )
        options = InputOptions()
        return InputIterator(
            distributed_from_function(input_fn, self.extended.replicas, options, fills=False)
        )

    def experimental_run(self, fn: Callable[..., Any], input_iterator: Any = None) -> Any:
        """Call a function on each replica, with the next element of an iterator where one is passed.

        Args:
            fn: The function: of the element, or of nothing.
            input_iterator: Has `get_next()`.

        Examples:
            >>> import evenfeed as tf
            >>> strategy = tf.compat.v1.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
            >>> dataset = strategy.experimental_distribute_dataset(tf.data.Dataset.range(4).batch(4))
            >>> strategy.experimental_run(lambda x: x * 10, iter(dataset)).array.tolist()
            [0, 10, 20, 30]
        """
        return self.run(fn, () if input_iterator is None else (input_iterator.get_next(),))

    def experimental_make_numpy_dataset(self, numpy_input: Any, session: object = None) -> Dataset:
        """Make a dataset of the rows of arrays, or of a nest of them; a list of arrays is stacked."""
        del session
        return Dataset.from_tensor_slices(numpy_input)

    def update_config_proto(self, config_proto: ConfigProto) -> ConfigProto:
        """Return a copy of the configuration of a session, for this strategy. There are no sessions to read it."""
        if not isinstance(config_proto, ConfigProto):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(
                described(
                    f"A ConfigProto is needed, but got {shortened(config_proto)}.",
                    fix="pass evenfeed.compat.v1.ConfigProto().",
                )
            )
        updated = deepcopy(config_proto)
        updated.isolate_session_state = True
        return updated


class MirroredStrategyV1(StrategyV1, MirroredStrategy):
    """One replica on each of several devices of this machine, all in step; see `MirroredStrategy`."""


@final
class OneDeviceStrategyV1(StrategyV1, OneDeviceStrategy):
    """One replica, on the device of that name; see `OneDeviceStrategy`."""


class MultiWorkerMirroredStrategyV1(StrategyV1, MultiWorkerMirroredStrategy):
    """One replica on each device of each worker, all in step; see `MultiWorkerMirroredStrategy`.

    Args:
        communication: What brings values from worker to worker.
        cluster_resolver: Says who the workers are; by default what TF_CONFIG says.
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
