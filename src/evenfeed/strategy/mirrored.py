"""Synchronous training on the devices of one machine."""

from collections.abc import Sequence
from typing import Any, final

from evenfeed.core.conversion import shortened
from evenfeed.core.errors import described
from evenfeed.core.jax_door import jax
from evenfeed.core.structure import NEST, map_structure, opened
from evenfeed.dataset import Dataset
from evenfeed.strategy.devices import default_devices, device_string, jax_device
from evenfeed.strategy.distributed_dataset import DistributedDataset
from evenfeed.strategy.replicas import Replicas
from evenfeed.strategy.threads import ensure_threads
from evenfeed.strategy.values import DistributedValues


@final
class MirroredStrategy:
    """One replica on each of several devices of this machine, all in step.

    Args:
        devices: Names such as `["GPU:0", "GPU:1"]`; by default all GPUs or TPUs, or else all
            logical CPUs.

    Examples:
        >>> import evenfeed as tf
        >>> strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> dataset = tf.data.Dataset.range(6).batch(4)
        >>> for x in strategy.experimental_distribute_dataset(dataset):
        ...     print([part.tolist() for part in strategy.experimental_local_results(x)])
        [[0, 1], [2, 3]]
        [[4], [5]]
    """

    def __init__(self, devices: Sequence[str] | None = None) -> None:
        names = default_devices() if devices is None else tuple(devices)
        found = [jax_device(name) for name in names]
        if not found or len(set(found)) < len(found):
            raise ValueError(
                described(
                    f"Each replica needs a device of its own, but got {list(names)}.",
                    fix='name one or more devices, each once: MirroredStrategy(["CPU:0", "CPU:1"]).',
                )
            )
        ensure_threads(sum(device.platform == "cpu" for device in found))
        self._replicas = Replicas(found)

    @property
    def num_replicas_in_sync(self) -> int:
        """How many replicas there are."""
        return self._replicas.count

    @property
    def devices(self) -> tuple[str, ...]:
        """The full names of the replicas' devices, in order."""
        return tuple(map(device_string, self._replicas.devices))

    @property
    def mesh(self) -> "jax.sharding.Mesh":
        """The replicas' devices as a JAX mesh with the one axis `replica`."""
        return self._replicas.mesh

    def experimental_distribute_dataset(self, dataset: Dataset) -> DistributedDataset:
        """Cut every global batch of `dataset` over the replicas, and bring the parts to them."""
        if not isinstance(dataset, Dataset):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(
                described(
                    f"A Dataset is needed, but got {shortened(dataset)}.",
                    fix="make one first: evenfeed.data.Dataset.from_tensor_slices(value).batch(n).",
                )
            )
        return DistributedDataset(dataset, self._replicas)

    def experimental_local_results(self, value: object) -> tuple[Any, ...]:
        """Return the parts of a per-replica value, or of a structure of them, by replica."""
        if isinstance(value, DistributedValues):
            return value.values
        if opened(value, NEST) is None:
            return (value,)
        return tuple(
            map_structure(_part_of(i), value, rules=NEST) for i in range(self._replicas.count)
        )

    def __repr__(self) -> str:
        return f"<MirroredStrategy on {', '.join(self.devices)}>"


def _part_of(replica: int) -> Any:
    def part(leaf: object) -> Any:
        return leaf.values[replica] if isinstance(leaf, DistributedValues) else leaf

    return part
