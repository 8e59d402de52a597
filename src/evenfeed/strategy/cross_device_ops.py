"""`CrossDeviceOps` and its subclasses, with which programs choose an all-reduce algorithm.

They have no effect here. XLA compiles each collective for the devices that take part in it (NCCL between
GPUs, the interconnect between TPUs, memory between CPUs) and combines adjacent ones. The arguments are
checked and stored.
"""

from collections.abc import Callable
from typing import Any, final

from evenfeed.core.conversion import shortened
from evenfeed.core.errors import described


class CrossDeviceOps:
    """The algorithm for collectives between devices. XLA chooses it, whichever subclass is passed."""


@final
class ReductionToOneDevice(CrossDeviceOps):
    """Reduces on one device, then copies the result to the others.

    Args:
        reduce_to_device: The name of that device.
        accumulation_fn: The function that adds values.
    """

    def __init__(
        self,
        reduce_to_device: str | None = None,
        accumulation_fn: Callable[..., Any] | None = None,
    ) -> None:
        self.reduce_to_device = reduce_to_device
        self.accumulation_fn = accumulation_fn


@final
class NcclAllReduce(CrossDeviceOps):
    """All-reduce with NCCL.

    Args:
        num_packs: The number of packs that values are sent in.

    Examples:
        >>> import evenfeed as tf
        >>> ops = tf.distribute.NcclAllReduce(num_packs=2)
        >>> tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"], cross_device_ops=ops).num_replicas_in_sync
        2
    """

    def __init__(self, num_packs: int = 1) -> None:
        self.num_packs = _packs(num_packs)


@final
class HierarchicalCopyAllReduce(CrossDeviceOps):
    """All-reduce along a hierarchy of devices.

    Args:
        num_packs: The number of packs that values are sent in.
    """

    def __init__(self, num_packs: int = 1) -> None:
        self.num_packs = _packs(num_packs)


def _packs(number: int) -> int:
    if number < 0:
        raise ValueError(
            described(
                f"num_packs must be at least 0, but got {number}.", fix="pass 1, or leave it out."
            )
        )
    return number


def check_cross_device_ops(given: object) -> None:
    """Raise TypeError unless the argument is a CrossDeviceOps or None."""
    if given is not None and not isinstance(given, CrossDeviceOps):
        raise TypeError(
            described(
                f"cross_device_ops must be a CrossDeviceOps, but got {shortened(given)}.",
                fix="pass evenfeed.distribute.NcclAllReduce(), or nothing.",
            )
        )
