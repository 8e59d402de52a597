"""The replicas of one worker: their devices, and the way of host data to them."""

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Final, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array
from evenfeed.core.dtypes import DType
from evenfeed.core.jax_door import jax
from evenfeed.strategy.hardware import Device
from evenfeed.tensors.placement import held_dtype, narrowed

AXIS: Final = "replica"

_jax: Any = jax  # whose device_put has no types


@final
class Replicas:
    """The devices that hold one replica each, in order."""

    def __init__(self, devices: Sequence[Device]) -> None:
        self.devices = tuple(devices)

    @property
    def count(self) -> int:
        """How many replicas there are."""
        return len(self.devices)

    @cached_property
    def mesh(self) -> "jax.sharding.Mesh":
        """The devices as a mesh with the one axis `replica`."""
        return jax.sharding.Mesh(np.array(self.devices), (AXIS,))

    @cached_property
    def sharding(self) -> "jax.sharding.NamedSharding":
        """How a batch lies on the devices: cut along its first axis."""
        return jax.sharding.NamedSharding(self.mesh, jax.sharding.PartitionSpec(AXIS))

    def put(self, array: Array, replica: int, what: str) -> Any:
        """Copy an array to the device of one replica; text stays on the host."""
        if array.dtype == dtypes.string:
            return array
        return _jax.device_put(_owned(narrowed(array, what)), self.devices[replica])

    def put_sharded(self, batch: Array, what: str) -> "jax.Array":
        """Copy each replica's rows of a batch to its device, as one array."""
        return _jax.device_put(_owned(narrowed(batch, what)), self.sharding)

    def arriving(self, dtype: DType) -> DType:
        """Return the dtype in which values of `dtype` arrive on the devices."""
        return held_dtype(dtype)


def _owned(array: Array) -> Array:
    """Return an array that nobody will write to: JAX may keep it as the memory of its own.

    A read-only array is a view of what the user passed, and the user may write there at any time;
    `may_alias=False` does not keep JAX from sharing it on the CPU.
    """
    return array if array.flags.writeable else array.copy()
