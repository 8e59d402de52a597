"""`AllGather`: the replicas' arrays, concatenated along an axis."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, final

import numpy as np

from evenfeed.core.callsite import Origin, where_called
from evenfeed.core.conversion import Array, shortened
from evenfeed.core.errors import described
from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.core.ragged.wrong_dtypes import WrongDtypeError
from evenfeed.replicas.collectives.all_reduce import Sum
from evenfeed.replicas.collectives.collective import Collective
from evenfeed.replicas.collectives.device_programs import held_by_all
from evenfeed.replicas.collectives.eager_primitive import LinearOperation, bind_eager
from evenfeed.replicas.function.staging import Unstaged
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.run.callback_meetings import Seat
from evenfeed.tensors.device_arrays import is_traced

_INTEGERS: Any = (int, np.integer)


@final
@dataclass(frozen=True)
class AllGather(Collective):
    """Concatenates the arrays of all replicas. Their lengths along the axis may differ.

    Attributes:
        axis: The axis, which may be negative.
    """

    axis: int

    @classmethod
    def every_form(cls) -> "Sequence[AllGather]":
        return [AllGather(0), AllGather(-1)]

    def check(self, tensor: Any) -> None:
        if tensor.dtype.kind in "OSU":
            raise WrongDtypeError(
                "all_gather works on devices, but strings stay on the host.",
                fix="return the strings, and gather them outside run with strategy.gather.",
            )
        if not (isinstance(self.axis, _INTEGERS) and -tensor.ndim <= self.axis < tensor.ndim):
            raise ValueError(
                described(
                    f"A tensor of shape {tensor.shape} has no axis {shortened(self.axis)} to gather along.",
                    fix="add an axis with jax.numpy.expand_dims(x, 0).",
                )
            )

    def eager(self, seat: Seat, arrays: Sequence[Any]) -> list[Any]:
        axes = tuple(self.axis if self.axis < 0 else self.axis - array.ndim for array in arrays)
        lengths = [array.shape[self.axis] for array in arrays]
        known = arrays and not any(is_traced(jax.lax.stop_gradient(array)) for array in arrays)
        every = _exchanged(seat, lengths) if known else [lengths] * seat.replicas.count
        by_array = tuple(zip(*every, strict=True))
        return bind_eager(seat, Join(where_called(), axes, by_array), arrays)

    def mapped(self, replicas: Replicas, index: Any, arrays: Sequence[Any]) -> list[Any]:
        del index
        return [self._mapped(replicas, array) for array in arrays]

    def _mapped(self, replicas: Replicas, array: Any) -> Any:
        if array.size == 0:  # which XLA refuses to gather
            return self.if_equal([array], replicas.count)[0]
        return replicas.gathered(array, self.axis, tiled=True)

    def uneven(self, replicas: Replicas, index: Any, arrays: Sequence[Any]) -> list[Any]:
        del replicas, index, arrays
        raise Unstaged("all_gather of parts that differ in shape", expected=True)

    def if_equal(self, arrays: Sequence[Any], count: int) -> list[Any]:
        return [jnp.concatenate([array] * count, self.axis) for array in arrays]


def _exchanged(seat: Seat, own: list[int]) -> Sequence[list[int]]:
    """Return the lengths of all replicas' arrays. They cannot be exchanged inside a compiled program."""
    replicas = seat.replicas

    def exchange(lengths: list[Any]) -> Sequence[Any]:
        received = replicas.session.exchange("the lengths of all_gather", lengths)
        every = [each for worker in received for each in worker]
        return [every] * replicas.local_count

    return seat.meet(f"all_gather of {len(own)}", own, exchange)


@final
@dataclass(frozen=True, slots=True)
class Join(LinearOperation):
    """Concatenates the arrays of all replicas along an axis.

    Attributes:
        origin: The line of user code.
        axes: The axis of each array, counted from the last so that it stays valid when `vmap` adds leading axes.
        lengths: For each array, its length along the axis on each replica.
    """

    origin: Origin | None
    axes: tuple[int, ...]
    lengths: tuple[tuple[int, ...], ...]

    def shapes(self, own: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
        rows = zip(own, self.axes, self.lengths, strict=True)
        return [_with_length(shape, axis, sum(lengths)) for shape, axis, lengths in rows]

    def description(self, own: Sequence[Any]) -> str:
        """Include the shapes, without the lengths that may differ."""
        rows = zip(own, self.axes, strict=True)
        avals = (f"{v.dtype}{list(_with_length(v.shape, axis, 0))}" for v, axis in rows)
        return f"all_gather of {', '.join(avals)} along {list(self.axes)}"

    def on_devices(self, replicas: Replicas, parts: Sequence[Any]) -> Sequence[Any]:
        rows = zip(zip(*parts, strict=True), self.axes, self.lengths, strict=True)
        columns = [gather_parts(replicas, column, axis, each) for column, axis, each in rows]
        return list(zip(*columns, strict=True))

    def on_host(self, parts: Sequence[Sequence[Array]]) -> list[Array]:
        """Concatenate. The program was compiled for equal lengths, so others are an error."""
        rows = list(zip(zip(*parts, strict=True), self.axes, self.lengths, strict=True))
        for column, axis, lengths in rows:
            found = tuple(part.shape[axis] for part in column)
            if found != lengths:
                raise ValueError(
                    described(
                        "all_gather inside a function that JAX compiles needs parts of equal length, but the "
                        f"replicas pass {list(found)}.",
                        fix="call all_gather outside of jit, scan, cond and vmap.",
                        origin=self.origin,
                    )
                )
        return [np.concatenate(column, axis) for column, axis, _ in rows]

    def transpose(self, seat: Seat, changes: list[Any]) -> list[Any]:
        """Sum the cotangents of all replicas, and take this replica's slice."""
        totals = bind_eager(seat, Sum(self.origin), changes)
        rows = zip(totals, self.axes, self.lengths, strict=True)
        return [_part(total, axis, lengths, seat.index) for total, axis, lengths in rows]

    def select(self, places: Sequence[int]) -> "Join":
        return replace(
            self,
            axes=tuple(self.axes[i] for i in places),
            lengths=tuple(self.lengths[i] for i in places),
        )


def _with_length(shape: tuple[int, ...], axis: int, length: int) -> tuple[int, ...]:
    whole = list(shape)
    whole[axis] = length
    return tuple(whole)


def _part(total: Any, axis: int, lengths: Sequence[int], index: int) -> Any:
    first = sum(lengths[:index])
    return jax.lax.slice_in_dim(total, first, first + lengths[index], axis=axis % total.ndim)


def gather_parts(
    replicas: Replicas, parts: Sequence[Any], axis: int, lengths: Sequence[int]
) -> list[Any]:
    """Concatenate the replicas' arrays along an axis, and copy the result to each device of this worker.

    Args:
        replicas: The replicas.
        parts: The arrays of this worker's replicas.
        axis: The axis.
        lengths: The lengths of all replicas' arrays along the axis.
    """
    if replicas.spans:
        parts = _from_all_workers(replicas, parts, axis, lengths)
    joined = jnp.concatenate([replicas.to_replica(part, 0) for part in parts], axis)
    return [replicas.to_replica(joined, replica) for replica in range(replicas.local_count)]


def _from_all_workers(
    replicas: Replicas, parts: Sequence[Any], axis: int, lengths: Sequence[int]
) -> list[Any]:
    """Return the parts of all replicas. All parts are padded to one shape, as an SPMD program needs."""
    own = [jnp.moveaxis(replicas.to_replica(p, r), axis, 0) for r, p in enumerate(parts)]
    longest = max(lengths)
    padded = [jnp.pad(p, [(0, longest - len(p)), *[(0, 0)] * (p.ndim - 1)]) for p in own]
    whole = held_by_all(replicas, replicas.joined(padded))
    return [
        jnp.moveaxis(whole[index * longest : index * longest + length], 0, axis)
        for index, length in enumerate(lengths)
    ]
