"""Collectives of plain Python replicas, as an operation of JAX's.

So they work wherever JAX takes a function. Where values are there, under `jax.grad` too, the replicas
meet in their threads. Inside `jit`, `scan`, `cond` and `while_loop` values exist only when the program
runs: it then calls back, and the calls of all replicas meet.
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
from evenfeed.replicas.run.in_programs import Seat, called_back
from evenfeed.tensors.placement import unbound

_ad: Any = jax_ad  # whose functions have no types


class Deed(ABC):
    """What the replicas do together with a list of arrays that each brings."""

    origin: Origin | None

    @abstractmethod
    def shapes(self, own: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """Return the shapes of the results."""

    @abstractmethod
    def words(self, own: Sequence[Any]) -> str:
        """Say what is done, in words that are the same on all replicas."""

    @abstractmethod
    def on_devices(self, replicas: Replicas, parts: Sequence[Any]) -> Sequence[Any]:
        """Do it with arrays on their devices; return for each replica what it gets."""

    @abstractmethod
    def on_host(self, parts: Sequence[Sequence[Array]]) -> list[Array]:
        """Do it with arrays of the host; return what every replica gets."""

    @abstractmethod
    def back(self, seat: Seat, changes: list[Any]) -> list[Any]:
        """Return the gradients of what this replica brought, of those of what it got."""

    @abstractmethod
    def chosen(self, places: Sequence[int]) -> "Deed":
        """Return the same for some of the arrays."""


@final
@dataclass(frozen=True, slots=True)
class Sum(Deed):
    """Adds what all replicas bring.

    Attributes:
        origin: The user's line.
    """

    origin: Origin | None

    def shapes(self, own: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """Return the same."""
        return list(own)

    def words(self, own: Sequence[Any]) -> str:
        """Name the shapes: they must be the same."""
        looks = ", ".join(f"{value.dtype}{list(value.shape)}" for value in own)
        return f"all_reduce of {looks}"

    def on_devices(self, replicas: Replicas, parts: Sequence[Any]) -> Sequence[Any]:
        """Add in one program."""
        return sum_parts(replicas, parts)

    def on_host(self, parts: Sequence[Sequence[Array]]) -> list[Array]:
        """Add in the order of the replicas: all of them get the same bits."""
        return [
            np.asarray(sum(column[1:], start=column[0]), column[0].dtype)
            for column in zip(*parts, strict=True)
        ]

    def back(self, seat: Seat, changes: list[Any]) -> list[Any]:
        """Add what comes back to all replicas, as TensorFlow does."""
        return together(seat, self, changes)

    def chosen(self, places: Sequence[int]) -> "Sum":
        """Return itself."""
        del places
        return self


@final
@dataclass(frozen=True, slots=True)
class Join(Deed):
    """Joins what all replicas bring along an axis.

    Attributes:
        origin: The user's line.
        axis: Counted from the last one, so that it stays right where `vmap` puts axes in front.
        lengths: For each array how long it is along the axis, by replica.
    """

    origin: Origin | None
    axes: tuple[int, ...]
    lengths: tuple[tuple[int, ...], ...]

    def shapes(self, own: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """Return those that are as long as all together."""
        rows = zip(own, self.axes, self.lengths, strict=True)
        return [_with_length(shape, axis, sum(lengths)) for shape, axis, lengths in rows]

    def words(self, own: Sequence[Any]) -> str:
        """Name the shapes, but not the lengths that may differ."""
        rows = zip(own, self.axes, strict=True)
        looks = (f"{v.dtype}{list(_with_length(v.shape, axis, 0))}" for v, axis in rows)
        return f"all_gather of {', '.join(looks)} along {list(self.axes)}"

    def on_devices(self, replicas: Replicas, parts: Sequence[Any]) -> Sequence[Any]:
        """Copy everything to every device, and join it there."""
        rows = zip(zip(*parts, strict=True), self.axes, self.lengths, strict=True)
        columns = [gather_parts(replicas, column, axis, each) for column, axis, each in rows]
        return list(zip(*columns, strict=True))

    def on_host(self, parts: Sequence[Sequence[Array]]) -> list[Array]:
        """Join; the program was made for lengths that are all the same."""
        rows = list(zip(zip(*parts, strict=True), self.axes, self.lengths, strict=True))
        for column, axis, lengths in rows:
            found = tuple(part.shape[axis] for part in column)
            if found != lengths:
                raise ValueError(
                    described(
                        "all_gather inside a function that JAX compiles needs parts of one length, but the "
                        f"replicas bring {list(found)}.",
                        fix="call all_gather outside of jit, scan, cond and vmap.",
                        origin=self.origin,
                    )
                )
        return [np.concatenate(column, axis) for column, axis, _ in rows]

    def back(self, seat: Seat, changes: list[Any]) -> list[Any]:
        """Add what comes back to all replicas, and take this one's part."""
        totals = together(seat, Sum(self.origin), changes)
        rows = zip(totals, self.axes, self.lengths, strict=True)
        number = seat.replicas.first + seat.number
        return [_part(total, axis, lengths, number) for total, axis, lengths in rows]

    def chosen(self, places: Sequence[int]) -> "Join":
        """Return the one of fewer arrays."""
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


def together(seat: Seat, deed: Deed, values: Sequence[Any]) -> list[Any]:
    """Let all replicas do something with what each of them passes here."""
    return list(_operation().bind(*values, seat=seat, deed=deed)) if values else []


@cache
def _operation() -> Any:
    operation = jax_extend_core.Primitive("evenfeed_together")
    operation.multiple_results = True
    operation.def_impl(_meet)
    operation.def_abstract_eval(_look)
    _ad.primitive_jvps[operation] = _push
    _ad.primitive_transposes[operation] = _pull
    jax_batching.primitive_batchers[operation] = _batch
    # What it calls back for is not known to JAX: a program is compiled once for each replica.
    jax_mlir.register_lowering(operation, _lowered)
    return operation


def _lowered(context: Any, *values: Any, seat: Seat, deed: Deed) -> Any:
    """Make the operation part of a program, which must be one replica's: on several devices it would hang."""
    if getattr(context.module_context.axis_context, "num_devices", 1) > 1:
        raise UnimplementedError(
            "A collective stands in code that JAX compiles (jit, scan, cond), together with an array that lies on "
            "several devices.",
            fix="pass the array to the replicas, each of which then gets a copy: strategy.run(fn, args=(array,)).",
            origin=deed.origin,
        )
    lower = jax_mlir.lower_fun(_staged, multiple_results=True)
    return lower(context, *values, seat=seat, deed=deed)


def _meet(*values: Any, seat: Seat, deed: Deed) -> Sequence[Any]:
    replicas = seat.replicas
    own = [replicas.to_replica(value, seat.number) for value in values]

    def done(parts: list[Any]) -> Sequence[Any]:
        return deed.on_devices(replicas, parts)

    # Bound to no device: gradients may bring them together with arrays of others.
    return list(map(unbound, seat.crew.meet(seat.number, deed.words(own), own, done)))


def _look(*values: Any, seat: Seat, deed: Deed) -> list[Any]:
    del seat
    shapes = deed.shapes([value.shape for value in values])
    return [
        jax.core.ShapedArray(shape, value.dtype)  # pyright: ignore[reportAttributeAccessIssue]
        for shape, value in zip(shapes, values, strict=True)
    ]


def _push(primals: Any, tangents: Any, *, seat: Seat, deed: Deed) -> tuple[Any, Any]:
    """Differentiate: the operation is linear. Integers have no changes."""
    results = together(seat, deed, primals)
    floats = [i for i, value in enumerate(primals) if jnp.issubdtype(value.dtype, jnp.inexact)]
    # Also those that are zero here: on another replica they may not be.
    moved = [_ad.instantiate_zeros(tangents[i]) for i in floats]
    changes: list[Any] = [_ad.Zero(jax.typeof(result).to_tangent_aval()) for result in results]
    for i, change in zip(floats, together(seat, deed.chosen(floats), moved), strict=True):
        changes[i] = change
    return results, changes


def _pull(changes: Any, *values: Any, seat: Seat, deed: Deed) -> list[Any]:
    back = deed.back(seat, [_ad.instantiate_zeros(change) for change in changes])
    return [
        part if _ad.is_undefined_primal(value) else None
        for part, value in zip(back, values, strict=True)
    ]


def _batch(values: Any, dims: Any, *, seat: Seat, deed: Deed) -> tuple[list[Any], list[int]]:
    sizes = {v.shape[d] for v, d in zip(values, dims, strict=True) if d is not None}
    (size,) = sizes
    front = [
        jnp.broadcast_to(v, (size, *v.shape)) if d is None else jnp.moveaxis(v, d, 0)
        for v, d in zip(values, dims, strict=True)
    ]
    return together(seat, deed, front), [0] * len(front)


def _staged(*values: Any, seat: Seat, deed: Deed) -> list[Any]:
    """Return what becomes part of a program: a call of the host."""
    if seat.replicas.spans:
        raise UnimplementedError(
            "A collective stands in code that JAX compiles (jit, scan, cond), in a function that runs as plain "
            "Python: there it cannot reach the replicas of other workers.",
            fix="let evenfeed.function compile the whole function, on parts that are equally long "
            "(InputOptions(pad_partial_batches=True)); or call the collective outside of that code.",
            origin=deed.origin,
        )
    results = [
        jax.ShapeDtypeStruct(aval.shape, aval.dtype)
        for aval in _look(*values, seat=seat, deed=deed)
    ]
    what = deed.words(values)

    def call(*arrays: Any) -> list[Array]:
        own = [np.asarray(array) for array in arrays]
        return called_back(seat, what, deed.origin, own, deed.on_host)

    return list(jax.pure_callback(call, results, *values))
