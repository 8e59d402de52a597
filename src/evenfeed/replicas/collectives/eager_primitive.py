"""A JAX primitive for operations of all replicas that run as plain Python.

So collectives work wherever JAX takes a function. If values are concrete, under `jax.grad` too, the replicas meet in
their threads. Inside `jit`, `scan`, `cond` and `while_loop`, values exist only when the program runs: then the program
calls back to Python, and the callbacks of all replicas meet.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from evenfeed.core.callsite import Origin
from evenfeed.core.conversion import Array
from evenfeed.core.errors import UnimplementedError
from evenfeed.core.lazy_jax import jax, jax_ad, jax_batching, jax_extend_core, jax_mlir, jnp
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.run.callback_meetings import Seat, meet_in_callback
from evenfeed.tensors.device_arrays import unbound


class LinearOperation(ABC):
    """A linear operation on the arrays of all replicas. Other collectives are composed of linear ones."""

    origin: Origin | None

    @abstractmethod
    def shapes(self, own: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
        """Return the shapes of the results, given the shapes of one replica's arrays."""

    @abstractmethod
    def description(self, own: Sequence[Any]) -> str:
        """Describe the operation. The text must be the same on all replicas."""

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
    def select(self, places: Sequence[int]) -> "LinearOperation":
        """Return the same operation for some of the arrays."""


def bind_eager(seat: Seat, operation: LinearOperation, values: Sequence[Any]) -> list[Any]:
    """Perform an operation on the values that all replicas pass here."""
    return list(_primitive().bind(*values, seat=seat, operation=operation)) if values else []


@cache
def _primitive() -> Any:
    primitive = jax_extend_core.Primitive("evenfeed_together")
    primitive.multiple_results = True
    primitive.def_impl(_meet)
    primitive.def_abstract_eval(_abstract_eval)
    jax_ad.primitive_jvps[primitive] = _jvp
    jax_ad.primitive_transposes[primitive] = _transpose
    jax_batching.primitive_batchers[primitive] = _batch
    # JAX does not know what the callback closes over: a program is compiled once for each replica.
    jax_mlir.register_lowering(primitive, _lower)
    return primitive


def _lower(context: Any, *values: Any, seat: Seat, operation: LinearOperation) -> Any:
    """Lower the primitive. The program must belong to one replica: on several devices it would hang."""
    if getattr(context.module_context.axis_context, "num_devices", 1) > 1:
        raise UnimplementedError(
            "A collective was called in code that JAX compiles (jit, scan, cond), together with an array that lies "
            "on several devices.",
            fix="pass the array to the replicas, so that each gets a copy: strategy.run(fn, args=(array,)).",
            origin=operation.origin,
        )
    lower = jax_mlir.lower_fun(_callback, multiple_results=True)
    return lower(context, *values, seat=seat, operation=operation)


def _meet(*values: Any, seat: Seat, operation: LinearOperation) -> Sequence[Any]:
    replicas = seat.replicas
    own = [replicas.to_replica(value, seat.number) for value in values]

    def resolve(parts: list[Any]) -> Sequence[Any]:
        return operation.on_devices(replicas, parts)

    # Not committed to a device: gradients may combine them with arrays on other devices.
    return list(map(unbound, seat.meet(operation.description(own), own, resolve)))


def _abstract_eval(*values: Any, seat: Seat, operation: LinearOperation) -> list[Any]:
    del seat
    shapes = operation.shapes([value.shape for value in values])
    return [
        jax.core.ShapedArray(shape, value.dtype)
        for shape, value in zip(shapes, values, strict=True)
    ]


def _jvp(primals: Any, tangents: Any, *, seat: Seat, operation: LinearOperation) -> tuple[Any, Any]:
    """Differentiate the linear operation. Integers have no tangents."""
    results = bind_eager(seat, operation, primals)
    floats = [i for i, value in enumerate(primals) if jnp.issubdtype(value.dtype, jnp.inexact)]
    # Also tangents that are zero here: they may be nonzero on another replica.
    float_tangents = [jax_ad.instantiate_zeros(tangents[i]) for i in floats]
    changes: list[Any] = [jax_ad.Zero(jax.typeof(result).to_tangent_aval()) for result in results]
    for i, change in zip(
        floats, bind_eager(seat, operation.select(floats), float_tangents), strict=True
    ):
        changes[i] = change
    return results, changes


def _transpose(changes: Any, *values: Any, seat: Seat, operation: LinearOperation) -> list[Any]:
    transpose = operation.transpose(seat, [jax_ad.instantiate_zeros(change) for change in changes])
    return [
        part if jax_ad.is_undefined_primal(value) else None
        for part, value in zip(transpose, values, strict=True)
    ]


def _batch(
    values: Any, dims: Any, *, seat: Seat, operation: LinearOperation
) -> tuple[list[Any], list[int]]:
    sizes = {v.shape[d] for v, d in zip(values, dims, strict=True) if d is not None}
    (size,) = sizes
    front = [
        jnp.broadcast_to(v, (size, *v.shape)) if d is None else jnp.moveaxis(v, d, 0)
        for v, d in zip(values, dims, strict=True)
    ]
    return bind_eager(seat, operation, front), [0] * len(front)


def _callback(*values: Any, seat: Seat, operation: LinearOperation) -> list[Any]:
    """Return the compiled form of the operation: a host callback."""
    if seat.replicas.spans:
        raise UnimplementedError(
            "A collective was called in code that JAX compiles (jit, scan, cond), inside a function that runs as plain "
            "Python. There it cannot reach the replicas of other workers.",
            fix="compile the whole function with evenfeed.function, on parts of equal length "
            "(InputOptions(pad_partial_batches=True)), or call the collective outside of that code.",
            origin=operation.origin,
        )
    results = [
        jax.ShapeDtypeStruct(aval.shape, aval.dtype)
        for aval in _abstract_eval(*values, seat=seat, operation=operation)
    ]
    what = operation.description(values)

    def call(*arrays: Any) -> list[Array]:
        own = [np.asarray(array) for array in arrays]
        return meet_in_callback(seat, what, operation.origin, own, operation.on_host)

    return list(jax.pure_callback(call, results, *values))
