"""Calls Python in the middle of a traced function, when its trace is evaluated equation by equation."""

import threading
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, Final

from evenfeed.core.lazy_jax import jax, jax_extend_core
from evenfeed.replicas.device_shards import shards
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.mirrored_values import Mirrored
from evenfeed.replicas.one_array import copies_of
from evenfeed.replicas.values import DistributedValues, PerReplica
from evenfeed.tensors.device_arrays import is_traced, unbound

_NAME: Final = "evenfeed_later"


class _Thread(threading.local):
    """Whether the thread runs a trace with arrays that are not committed to a device."""

    unbinds = False


_thread: Final = _Thread()


def run_unbound(program: Callable[..., Any], *arrays: Any) -> Any:
    """Evaluate a trace equation by equation, on uncommitted arrays, so that JAX can combine parts of replicas."""
    previous, _thread.unbinds = _thread.unbinds, True
    try:
        return program(*map(unbound, arrays))
    finally:
        _thread.unbinds = previous


def is_done_in_python(equation: Any) -> bool:
    """Return True if an equation was made by `call_on_host`."""
    return equation.primitive.name == _NAME


@cache
def _primitive() -> Any:
    """Return the primitive of `call_on_host`."""
    primitive = jax_extend_core.Primitive(_NAME)
    primitive.multiple_results = True
    primitive.def_impl(_impl)
    primitive.def_abstract_eval(_abstract_eval)
    return primitive


def _impl(
    *values: Any, call: Callable[..., Sequence[Any]], results: Sequence[Any]
) -> Sequence[Any]:
    del results
    found = call(*values)
    return list(map(unbound, found)) if _thread.unbinds else found


def _abstract_eval(
    *values: Any, call: Callable[..., Sequence[Any]], results: Sequence[Any]
) -> list[Any]:
    del values, call
    return list(results)


def call_on_host(
    call: Callable[..., Sequence[Any]], results: Sequence[Any], *values: Any
) -> list[Any]:
    """Call a function on arrays, now or when the current trace is evaluated equation by equation.

    Args:
        call: Takes arrays, returns a list of arrays.
        results: The shapes and dtypes of the returned arrays.
        values: The arguments of `call`.
    """
    avals = [jax.core.ShapedArray(r.shape, r.dtype) for r in results]
    return list(_primitive().bind(*values, call=call, results=tuple(avals)))


def parts_here(value: DistributedValues, replicas: Replicas) -> Sequence[Any]:
    """Return the parts of this worker's replicas. The parts of a traced array are taken when the trace runs."""
    if isinstance(value, Mirrored):
        array, shape = value.array, value.array.shape
        take = partial(copies_of, count=replicas.local_count)
    elif not isinstance(value, PerReplica) or value.whole is None:
        return value.parts
    elif value.is_lifted:
        array, shape, take = value.array, value.array.shape[1:], _first_rows
    else:
        array, take = value.array, shards
        shape = (array.shape[0] // replicas.count, *array.shape[1:])
    if not is_traced(array):
        return value.parts
    results = [jax.ShapeDtypeStruct(shape, array.dtype)] * replicas.local_count
    return call_on_host(take, results, array)


def _first_rows(array: Any) -> list[Any]:
    return [part[0] for part in shards(array)]
