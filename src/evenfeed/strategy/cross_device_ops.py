"""`CrossDeviceOps` and its kinds: names by which programs ask how values cross devices.

XLA compiles each collective for the devices that meet in it (NCCL between GPUs, the interconnect
between TPUs, memory between CPUs), and joins those that stand side by side. So the kinds all mean the same
here; their arguments are checked, and kept.
"""

from collections.abc import Callable
from typing import Any, final

from evenfeed.core.conversion import shortened
from evenfeed.core.errors import described


class CrossDeviceOps:
    """How the replicas' values are brought together. XLA decides on it, whichever kind is passed."""


@final
class ReductionToOneDevice(CrossDeviceOps):
    """Sums on one device, then copies.

    Args:
        reduce_to_device: Its name.
        accumulation_fn: How values are added.
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
    """Sums over NCCL.

    Args:
        num_packs: In how many packs values are sent.

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
    """Sums in a tree of devices.

    Args:
        num_packs: In how many packs values are sent.
    """

    def __init__(self, num_packs: int = 1) -> None:
        self.num_packs = _packs(num_packs)


def _packs(number: int) -> int:
    if number < 0:
        raise ValueError(
            described(f"num_packs must be at least 0, but got {number}.", fix="pass 1, or nothing.")
        )
    return number


def check_cross_device_ops(given: object) -> None:
    """Refuse what is no CrossDeviceOps."""
    if given is not None and not isinstance(given, CrossDeviceOps):
        raise TypeError(
            described(
                f"cross_device_ops must be a CrossDeviceOps, but got {shortened(given)}.",
                fix="pass evenfeed.distribute.NcclAllReduce(), or nothing.",
            )
        )
