"""`MirroredStrategy`: synchronous training on the devices of one machine."""

from collections.abc import Iterable, Sequence
from typing import Any, cast

from evenfeed.core.conversion import shortened
from evenfeed.core.errors import described
from evenfeed.replicas.mesh import Replicas
from evenfeed.strategy.cross_device_ops import CrossDeviceOps, check_cross_device_ops
from evenfeed.strategy.device_names import LogicalDevice, PhysicalDevice
from evenfeed.strategy.devices import default_devices, jax_device
from evenfeed.strategy.lone_cpu import say_once_if_alone
from evenfeed.strategy.lone_worker import say_once_if_apart
from evenfeed.strategy.strategy import Strategy
from evenfeed.strategy.xla_threads import ensure_threads


class MirroredStrategy(Strategy):
    """Synchronous training on several devices of this machine, with one replica per device.

    Args:
        devices: Names such as `["GPU:0", "GPU:1"]`, or logical devices. By default all GPUs or TPUs, or
            else all logical CPUs.
        cross_device_ops: A CrossDeviceOps. It has no effect: XLA chooses the algorithm of each collective.

    Examples:
        >>> import evenfeed as tf
        >>> strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> dataset = tf.data.Dataset.range(6).batch(4)
        >>> for x in strategy.experimental_distribute_dataset(dataset):
        ...     print([part.tolist() for part in strategy.experimental_local_results(x)])
        [[0, 1], [2, 3]]
        [[4], [5]]
    """

    def __init__(
        self,
        devices: Sequence[str | LogicalDevice] | None = None,
        cross_device_ops: CrossDeviceOps | None = None,
    ) -> None:
        check_cross_device_ops(cross_device_ops)
        names = () if devices is None else _listed(devices)
        if not names:
            names = tuple(default_devices())
            say_once_if_alone(names)
        found: list[Any] = [jax_device(name, len(names)) for name in names]
        if len(set(found)) < len(found):
            raise ValueError(
                described(
                    f"Each replica needs a device of its own, but got {list(names)}.",
                    fix='name one or more devices, each once: MirroredStrategy(["CPU:0", "CPU:1"]).',
                )
            )
        say_once_if_apart()
        super().__init__(replicas_on(found))


def replicas_on(devices: Sequence[Any]) -> Replicas:
    """Return one replica for each device. Makes sure that their collectives have enough threads."""
    ensure_threads(sum(device.platform == "cpu" for device in devices))
    return Replicas.on(devices)


def _name(device: str | LogicalDevice) -> str:
    return device.name if isinstance(device, LogicalDevice) else device


def _listed(devices: object) -> tuple[str, ...]:
    """Return the names in a list. A single device counts as a list, so that a later error names it."""
    if isinstance(devices, (LogicalDevice, PhysicalDevice)):
        return (cast("Any", devices),)
    if isinstance(devices, Iterable) and not isinstance(devices, (str, bytes)):
        return tuple(map(_name, cast("Iterable[str | LogicalDevice]", devices)))
    # TensorFlow reads a string as a list of characters and raises ValueError.
    kind = ValueError if isinstance(devices, str) else TypeError
    example = f"[{devices!r}]" if isinstance(devices, str) else '["CPU:0", "CPU:1"]'
    raise kind(
        described(
            f"devices must be a list of device names, but got {shortened(devices)}.",
            fix=f"write MirroredStrategy({example}).",
        )
    )
