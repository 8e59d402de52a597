"""Collectives of replicas that run as plain Python, as a JAX primitive.

So they work wherever JAX takes a function. If values are concrete, under `jax.grad` too, the replicas meet in their
threads. Inside `jit`, `scan`, `cond` and `while_loop`, values exist only when the program runs: then the program calls
back to Python, and the callbacks of all replicas meet.
"""

# JAX leaves parts of its own types unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, final

import numpy as np

from evenfeed.core.callsite import Origin
from evenfeed.core.conversion import Array
from evenfeed.core.errors import UnimplementedError, described
from evenfeed.core.lazy_jax import jax, jax_ad, jax_batching, jax_extend_core, jax_mlir, jnp
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.reduce.collectives import gather_parts, sum_parts
from evenfeed.replicas.run.callback_meetings import Seat, meet_in_callback
from evenfeed.tensors.device_arrays import unbound

_ad: Any = jax_ad  # its functions have no types


class Collective(ABC):
    """An operation that all replicas do together, on a list of arrays from each."""

    origin: Origin | None

    @abstractmethod
    def shapes(self, own: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """Return the shapes of the results, given the shapes of one replica's arrays."""

    @abstractmethod
    def description(self, own: Sequence[Any]) -> str:
        """Describe the collective. The text must be the same on all replicas."""

    @abstractmethod
    def on_devices(self, replicas: Replicas, parts: Sequence[Any]) -> Sequence[Any]:
        """Compute it on devices; return each replica's results."""

    @abstractmethod
    def on_host(self, parts: Sequence[Sequence[Array]]) -> list[Array]:
        """Compute it on the host; return the results, which are the same for every replica."""

    @abstractmethod
    def transpose(self, seat: Seat, changes: list[Any]) -> list[Any]:
        """Return the cotangents of this replica's inputs, given those of its results."""

    @abstractmethod
    def select(self, places: Sequence[int]) -> "Collective":
        """Return the same collective for some of the arrays."""


@final
@dataclass(frozen=True, slots=True)
class Sum(Collective):
    """Sums the arrays of all replicas.

    Attributes:
        origin: The line of user code.
    """

    origin: Origin | None

    def shapes(self, own: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
        return list(own)

    def description(self, own: Sequence[Any]) -> str:
        """Include the shapes, which must be the same."""
        avals = ", ".join(f"{value.dtype}{list(value.shape)}" for value in own)
        return f"all_reduce of {avals}"

    def on_devices(self, replicas: Replicas, parts: Sequence[Any]) -> Sequence[Any]:
        """Sum in one program."""
        return sum_parts(replicas, parts)

    def on_host(self, parts: Sequence[Sequence[Array]]) -> list[Array]:
        """Sum in replica order, so that all replicas get the same bits."""
        return [
            np.asarray(sum(column[1:], start=column[0]), column[0].dtype)
            for column in zip(*parts, strict=True)
        ]

    def transpose(self, seat: Seat, changes: list[Any]) -> list[Any]:
        """Sum the cotangents of all replicas, as TensorFlow does."""
        return bind_collective(seat, self, changes)

    def select(self, places: Sequence[int]) -> "Sum":
        del places
        return self


@final
@dataclass(frozen=True, slots=True)
class Join(Collective):
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
        """Copy all parts to every device, and concatenate there."""
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
        totals = bind_collective(seat, Sum(self.origin), changes)
        rows = zip(totals, self.axes, self.lengths, strict=True)
        number = seat.replicas.first + seat.number
        return [_part(total, axis, lengths, number) for total, axis, lengths in rows]

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


def _part(total: Any, axis: int, lengths: Sequence[int], number: int) -> Any:
    first = sum(lengths[:number])
    return jax.lax.slice_in_dim(total, first, first + lengths[number], axis=axis % total.ndim)


def bind_collective(seat: Seat, collective: Collective, values: Sequence[Any]) -> list[Any]:
    """Run a collective over all replicas, on the values that each passes here."""
    return list(_primitive().bind(*values, seat=seat, collective=collective)) if values else []


@cache
def _primitive() -> Any:
    primitive = jax_extend_core.Primitive("evenfeed_together")
    primitive.multiple_results = True
    primitive.def_impl(_meet)
    primitive.def_abstract_eval(_abstract_eval)
    _ad.primitive_jvps[primitive] = _jvp
    _ad.primitive_transposes[primitive] = _transpose
    jax_batching.primitive_batchers[primitive] = _batch
    # JAX does not know what the callback closes over: a program is compiled once for each replica.
    jax_mlir.register_lowering(primitive, _lower)
    return primitive


def _lower(context: Any, *values: Any, seat: Seat, collective: Collective) -> Any:
    """Lower the primitive. The program must belong to one replica: on several devices it would hang."""
    if getattr(context.module_context.axis_context, "num_devices", 1) > 1:
        raise UnimplementedError(
            "A collective was called in code that JAX compiles (jit, scan, cond), together with an array that lies "
            "on several devices.",
            fix="pass the array to the replicas, so that each gets a copy: strategy.run(fn, args=(array,)).",
            origin=collective.origin,
        )
    lower = jax_mlir.lower_fun(_callback, multiple_results=True)
    return lower(context, *values, seat=seat, collective=collective)


def _meet(*values: Any, seat: Seat, collective: Collective) -> Sequence[Any]:
    replicas = seat.replicas
    own = [replicas.to_replica(value, seat.number) for value in values]

    def resolve(parts: list[Any]) -> Sequence[Any]:
        return collective.on_devices(replicas, parts)

    # Not committed to a device: gradients may combine them with arrays on other devices.
    return list(
        map(unbound, seat.threads.meet(seat.number, collective.description(own), own, resolve))
    )


def _abstract_eval(*values: Any, seat: Seat, collective: Collective) -> list[Any]:
    del seat
    shapes = collective.shapes([value.shape for value in values])
    return [
        jax.core.ShapedArray(shape, value.dtype)  # pyright: ignore[reportAttributeAccessIssue]
        for shape, value in zip(shapes, values, strict=True)
    ]


def _jvp(primals: Any, tangents: Any, *, seat: Seat, collective: Collective) -> tuple[Any, Any]:
    """Differentiate: the collective is linear. Integers have no tangents."""
    results = bind_collective(seat, collective, primals)
    floats = [i for i, value in enumerate(primals) if jnp.issubdtype(value.dtype, jnp.inexact)]
    # Also tangents that are zero here: they may be nonzero on another replica.
    float_tangents = [_ad.instantiate_zeros(tangents[i]) for i in floats]
    changes: list[Any] = [_ad.Zero(jax.typeof(result).to_tangent_aval()) for result in results]
    for i, change in zip(
        floats, bind_collective(seat, collective.select(floats), float_tangents), strict=True
    ):
        changes[i] = change
    return results, changes


def _transpose(changes: Any, *values: Any, seat: Seat, collective: Collective) -> list[Any]:
    transpose = collective.transpose(seat, [_ad.instantiate_zeros(change) for change in changes])
    return [
        part if _ad.is_undefined_primal(value) else None
        for part, value in zip(transpose, values, strict=True)
    ]


def _batch(
    values: Any, dims: Any, *, seat: Seat, collective: Collective
) -> tuple[list[Any], list[int]]:
    sizes = {v.shape[d] for v, d in zip(values, dims, strict=True) if d is not None}
    (size,) = sizes
    front = [
        jnp.broadcast_to(v, (size, *v.shape)) if d is None else jnp.moveaxis(v, d, 0)
        for v, d in zip(values, dims, strict=True)
    ]
    return bind_collective(seat, collective, front), [0] * len(front)


def _callback(*values: Any, seat: Seat, collective: Collective) -> list[Any]:
    """Return the compiled form of the collective: a host callback."""
    if seat.replicas.spans:
        raise UnimplementedError(
            "A collective was called in code that JAX compiles (jit, scan, cond), inside a function that runs as plain "
            "Python. There it cannot reach the replicas of other workers.",
            fix="compile the whole function with evenfeed.function, on parts of equal length "
            "(InputOptions(pad_partial_batches=True)), or call the collective outside of that code.",
            origin=collective.origin,
        )
    results = [
        jax.ShapeDtypeStruct(aval.shape, aval.dtype)
        for aval in _abstract_eval(*values, seat=seat, collective=collective)
    ]
    what = collective.description(values)

    def call(*arrays: Any) -> list[Array]:
        own = [np.asarray(array) for array in arrays]
        return meet_in_callback(seat, what, collective.origin, own, collective.on_host)

    return list(jax.pure_callback(call, results, *values))
