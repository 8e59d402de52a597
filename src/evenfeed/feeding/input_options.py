"""`InputOptions` and `InputContext`: the settings of distributed input, and the context of a `dataset_fn`."""

import enum
from dataclasses import dataclass
from typing import final

from evenfeed.core.arguments import whole_number
from evenfeed.core.conversion import shortened
from evenfeed.core.errors import described


class InputReplicationMode(enum.Enum):
    """Whether a `dataset_fn` is called once per worker or once per replica."""

    PER_WORKER = "PER_WORKER"
    PER_REPLICA = "PER_REPLICA"


@final
@dataclass(frozen=True)
class InputOptions:
    """How batches are distributed to the replicas.

    Attributes:
        experimental_fetch_to_device: Whether to prefetch batches to the devices. None means True. If False,
            batches stay NumPy arrays on the host.
        experimental_replication_mode: Whether a `dataset_fn` is called per worker or per replica.
        experimental_place_dataset_on_device: Accepted for compatibility. Datasets always run on the host. With
            a `dataset_fn`, it requires PER_REPLICA and experimental_fetch_to_device=False.
        experimental_per_replica_buffer_size: The number of steps to prefetch to the devices.
        pad_partial_batches: Give every step the same shapes. Short batches are padded with zeros, and each
            step becomes `(element, valid)`, with a bool for each row that is False for padding.

    Examples:
        >>> import evenfeed as tf
        >>> strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> options = tf.distribute.InputOptions(pad_partial_batches=True)
        >>> dataset = tf.data.Dataset.range(1, 6).batch(4)
        >>> for x, valid in strategy.experimental_distribute_dataset(dataset, options):
        ...     print(x.array.tolist(), valid.array.tolist())
        [1, 2, 3, 4] [True, True, True, True]
        [5, 0, 0, 0] [True, False, False, False]
    """

    experimental_fetch_to_device: bool | None = None
    experimental_replication_mode: InputReplicationMode = InputReplicationMode.PER_WORKER
    experimental_place_dataset_on_device: bool = False
    experimental_per_replica_buffer_size: int = 1
    pad_partial_batches: bool = False

    def __post_init__(self) -> None:
        if self.experimental_fetch_to_device is None:
            object.__setattr__(self, "experimental_fetch_to_device", True)
        size = whole_number(
            self.experimental_per_replica_buffer_size, "experimental_per_replica_buffer_size"
        )
        if size < 0:
            raise ValueError(
                described(
                    f"experimental_per_replica_buffer_size must not be negative, but got {size}.",
                    fix="pass the number of steps to prefetch to the devices.",
                )
            )
        if not isinstance(self.experimental_replication_mode, InputReplicationMode):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ValueError(
                described(
                    "experimental_replication_mode must be an InputReplicationMode, but got "
                    f"{shortened(self.experimental_replication_mode)}.",
                    fix="pass a member of evenfeed.distribute.InputReplicationMode.",
                )
            )


def input_options(given: object) -> InputOptions:
    """Return the options that the user passed, or the defaults."""
    if given is None:
        return InputOptions()
    if isinstance(given, InputOptions):
        return given
    raise TypeError(
        described(
            f"options must be InputOptions, but got {shortened(given)}.",
            fix="pass evenfeed.distribute.InputOptions(...).",
        )
    )


@final
class InputContext:
    """Tells a `dataset_fn` which part of the input it makes a dataset for.

    Args:
        num_input_pipelines: The number of datasets, over all workers.
        input_pipeline_id: The index of this dataset.
        num_replicas_in_sync: The number of replicas, over all workers.

    Examples:
        >>> import evenfeed as tf
        >>> context = tf.distribute.InputContext(2, 0, 4)
        >>> context.get_per_replica_batch_size(32)
        8
    """

    def __init__(
        self,
        num_input_pipelines: int = 1,
        input_pipeline_id: int = 0,
        num_replicas_in_sync: int = 1,
    ) -> None:
        self._num_input_pipelines = num_input_pipelines
        self._input_pipeline_id = input_pipeline_id
        self._num_replicas_in_sync = num_replicas_in_sync

    @property
    def num_input_pipelines(self) -> int:
        """The number of datasets, over all workers."""
        return self._num_input_pipelines

    @property
    def input_pipeline_id(self) -> int:
        """The index of this dataset."""
        return self._input_pipeline_id

    @property
    def num_replicas_in_sync(self) -> int:
        """The number of replicas, over all workers."""
        return self._num_replicas_in_sync

    def get_per_replica_batch_size(self, global_batch_size: int) -> int:
        """Return the number of rows of a global batch for each replica.

        Raises:
            ValueError: The batch size is not a multiple of the number of replicas.
        """
        size, rest = divmod(global_batch_size, self.num_replicas_in_sync)
        if rest:
            near = max(1, size) * self.num_replicas_in_sync
            raise ValueError(
                described(
                    f"A global batch of {global_batch_size} cannot be divided evenly over "
                    f"{self.num_replicas_in_sync} replicas.",
                    fix=f"use a multiple of {self.num_replicas_in_sync}, such as {near}.",
                )
            )
        return size

    def __str__(self) -> str:
        return (
            f"tf.distribute.InputContext(input pipeline id {self.input_pipeline_id}, "
            f"total: {self.num_input_pipelines})"
        )

    def __repr__(self) -> str:
        return (
            f"<InputContext of pipeline {self.input_pipeline_id} of {self.num_input_pipelines}, "
            f"{self.num_replicas_in_sync} replicas>"
        )
