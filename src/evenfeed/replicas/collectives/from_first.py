"""`FromFirst`: the arrays of replica 0, for all replicas. Variables with ONLY_FIRST_REPLICA use it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final, final

from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.replicas.collectives.collective import Collective
from evenfeed.replicas.collectives.device_programs import held_by_all, run_together
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.run.callback_meetings import Seat
from evenfeed.tensors.device_arrays import is_traced, unbound

# The name of the equation in a trace, by which `run/needless_copies.py` finds it.
NAME: Final = "evenfeed_from_first"


@final
@dataclass(frozen=True)
class FromFirst(Collective):
    """Gives all replicas the arrays of replica 0."""

    has_gradient = False  # it serves assignments, which a transformation refuses

    @classmethod
    def every_form(cls) -> "Sequence[FromFirst]":
        return [FromFirst()]

    def check(self, tensor: Any) -> None:
        """Accept every tensor."""

    def eager(self, seat: Seat, arrays: Sequence[Any]) -> list[Any]:
        return [_met(seat, array) for array in arrays]

    def mapped(self, replicas: Replicas, index: Any, arrays: Sequence[Any]) -> list[Any]:
        def one(array: Any, index: Any) -> Any:
            return _first(replicas, index, array)

        one.__name__ = NAME
        return [jax.jit(one)(array, index) for array in arrays]

    def uneven(self, replicas: Replicas, index: Any, arrays: Sequence[Any]) -> list[Any]:
        return [_first(replicas, index, array) for array in arrays]

    def if_equal(self, arrays: Sequence[Any], count: int) -> list[Any]:
        del count
        return list(arrays)


def _met(seat: Seat, own: Any) -> Any:
    if is_traced(own):  # inside a transformation nothing can be assigned: the caller raises
        return own
    # Across workers a collective transfers it, which needs one shape.
    description = f"{own.dtype}{list(own.shape)}" if seat.replicas.spans else "value"
    resolve = partial(copies_of_first, seat.replicas)
    return unbound(seat.meet(f"an assignment of the first replica's {description}", own, resolve))


def _first(replicas: Replicas, index: Any, array: Any) -> Any:
    # The other arrays are replaced with zeros, not multiplied by zero, so their NaNs do not spread. JAX sums
    # bools as ints, so the dtype is restored.
    own = jnp.where(index == 0, array, jnp.zeros_like(array))
    return jax.lax.psum(own, replicas.axis).astype(own.dtype)


def copies_of_chief(replicas: Replicas, own: Any) -> list[Any]:
    """Copy the first worker's array to the device of each of this worker's replicas.

    Workers that share the first replica may have different arrays for it, so it cannot say which one counts.
    """
    first = own
    if replicas.spans:
        entries = replicas.entry_of_each_device(jnp.expand_dims(own, 0))
        devices: list[Any] = list(replicas.mesh.devices.flat)
        place = min(range(len(devices)), key=lambda d: (devices[d].process_index, d))
        program = replicas.session.program(("entry", place), partial(_entry, replicas, place))
        first = run_together(replicas, program, entries).addressable_data(0)
    return [replicas.to_replica(first, replica) for replica in range(replicas.local_count)]


def _entry(replicas: Replicas, place: int) -> Callable[..., Any]:
    def entry(entries: Any) -> Any:
        return entries[place]

    return jax.jit(entry, out_shardings=replicas.replicated)


def copies_of_first(replicas: Replicas, parts: Sequence[Any]) -> list[Any]:
    """Copy replica 0's array to the device of each of this worker's replicas."""
    first = held_by_all(replicas, replicas.stacked(parts))[0] if replicas.spans else parts[0]
    return [replicas.to_replica(first, replica) for replica in range(replicas.local_count)]
