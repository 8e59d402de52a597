"""Where the arrays of a program are: on one device, on those of the replicas, or on one with copies on all."""

from collections.abc import Callable
from typing import Any, Final

from evenfeed.core.concurrency.weak_table import WeakTable
from evenfeed.core.lazy_jax import jax
from evenfeed.replicas.mesh import Replicas
from evenfeed.tensors.device_arrays import is_traced, same_memory

# The copies of what variables without copies hold. Each lives as long as the variable holds the array.
_copies: Final = WeakTable[Any]()


def copied_once(replicas: Replicas, array: Any) -> Any:
    """Return what a variable holds on the devices of the replicas. The next program that reads it copies nothing."""
    if is_traced(array) or is_placed_on(replicas, array):
        return array
    copies = _copies.of(array, lambda: replicas.everywhere(array))
    return copies if is_placed_on(replicas, copies) else replicas.everywhere(array)


def on_first_device(whole: Any) -> Any:
    """Return an array of one device for a replicated one, which `copied_once` finds again."""
    own = same_memory(whole.addressable_data(0))  # `whole` must not refer to it
    _copies.put(own, whole)
    return own


def is_placed_on(replicas: Replicas, array: Any) -> bool:
    """Return True if an array is on the devices of the replicas, or traced."""
    if is_traced(array):
        return True
    # A NumPy array that a function closes over has no sharding yet.
    sharding = getattr(array, "sharding", None)
    return sharding is not None and sharding.device_set == replicas.device_set


def on_device(run: Callable[..., Any], device: Any) -> Callable[..., Any]:
    """Return a program that runs on a device, unless its arguments are committed to others."""
    if device is None or device == jax.devices()[0]:
        return run

    def run_there(*arrays: Any) -> Any:
        with jax.default_device(device):
            return run(*arrays)

    return run_there
