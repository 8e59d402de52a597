"""Synchronous training on the devices of one machine."""

from collections.abc import Iterable, Sequence
from typing import Any, cast, final

from evenfeed.core.conversion import shortened
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.jax_door import jax
from evenfeed.core.structure import NEST, flatten, map_structure, opened
from evenfeed.dataset import Dataset
from evenfeed.strategy.device_names import LogicalDevice, PhysicalDevice
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
        names = default_devices() if devices is None else _listed(devices)
        found = [jax_device(name, len(names)) for name in names]
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
        count = self._replicas.count
        for leaf in flatten(value, NEST):
            _check_parts(leaf, count)
        return tuple(map_structure(_part_of(i), value, rules=NEST) for i in range(count))

    def __repr__(self) -> str:
        return f"<MirroredStrategy on {', '.join(self.devices)}>"


def _listed(devices: object) -> tuple[str, ...]:
    """Return the names in a list; a lone device is taken for a list, and refused with its value."""
    if isinstance(devices, (LogicalDevice, PhysicalDevice)):
        return (cast("Any", devices),)
    if isinstance(devices, Iterable) and not isinstance(devices, (str, bytes)):
        return tuple(cast("Iterable[str]", devices))
    # TensorFlow reads a text as a list of letters, whence the class of its error.
    kind = ValueError if isinstance(devices, str) else TypeError
    example = f"[{devices!r}]" if isinstance(devices, str) else '["CPU:0", "CPU:1"]'
    raise kind(
        described(
            f"A list of device names is needed, but got {shortened(devices)}.",
            fix=f"write MirroredStrategy({example}).",
        )
    )


def _check_parts(leaf: object, replicas: int) -> None:
    if isinstance(leaf, DistributedValues) and len(leaf) != replicas:
        raise InvalidArgumentError(
            f"A value in the structure has {len(leaf)} parts, but this strategy has {replicas} "
            f"{'replica' if replicas == 1 else 'replicas'}.",
            fix="ask the strategy that the value was made by, or pass the value itself, "
            "outside of a structure.",
        )


def _part_of(replica: int) -> Any:
    def part(leaf: object) -> Any:
        return leaf.values[replica] if isinstance(leaf, DistributedValues) else leaf

    return part
