"""What is done in Python in the middle of a traced function, when its trace is run step by step."""

# JAX leaves parts of its own types unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import threading
from collections.abc import Callable, Sequence
from functools import cache, partial
from typing import Any, Final

from evenfeed.core.lazy_jax import jax, jax_extend_core
from evenfeed.replicas.mesh import Replicas, shards
from evenfeed.replicas.mirrored_values import Mirrored
from evenfeed.replicas.one_array import copies_of
from evenfeed.replicas.values import DistributedValues, PerReplica
from evenfeed.tensors.placement import is_traced, unbound

_NAME: Final = "evenfeed_later"


class _Thread(threading.local):
    """Whether the arrays of the trace that a thread runs are bound to no device."""

    unbinds = False


_thread: Final = _Thread()


def run_unbound(program: Callable[..., Any], *arrays: Any) -> Any:
    """Run a trace step by step, so that JAX brings parts of different replicas together where they meet."""
    before, _thread.unbinds = _thread.unbinds, True
    try:
        return program(*map(unbound, arrays))
    finally:
        _thread.unbinds = before


def is_done_in_python(equation: Any) -> bool:
    """Return True if an equation of a trace is one of `later`."""
    return equation.primitive.name == _NAME


@cache
def _later() -> Any:
    """Return the operation that is done in Python, when a trace is run step by step."""
    operation = jax_extend_core.Primitive(_NAME)
    operation.multiple_results = True
    operation.def_impl(_do)
    operation.def_abstract_eval(_look)
    return operation


def _do(*values: Any, call: Callable[..., Sequence[Any]], results: Sequence[Any]) -> Sequence[Any]:
    del results
    found = call(*values)
    return list(map(unbound, found)) if _thread.unbinds else found


def _look(*values: Any, call: Callable[..., Sequence[Any]], results: Sequence[Any]) -> list[Any]:
    del values, call
    return list(results)


def later(call: Callable[..., Sequence[Any]], results: Sequence[Any], *values: Any) -> list[Any]:
    """Call a function on arrays, now or when the trace that goes on is run step by step.

    Args:
        call: Takes arrays, returns a list of arrays.
        results: Their shapes and dtypes.
        values: What it is called with.
    """
    avals = [jax.core.ShapedArray(r.shape, r.dtype) for r in results]  # pyright: ignore[reportAttributeAccessIssue]
    return list(_later().bind(*values, call=call, results=tuple(avals)))


def parts_here(value: DistributedValues, replicas: Replicas) -> Sequence[Any]:
    """Return the parts of this worker's replicas; those of an array that is traced are taken when it runs."""
    if isinstance(value, Mirrored):
        array, shape = value.array, value.array.shape
        take = partial(copies_of, count=replicas.local_count)
    elif not isinstance(value, PerReplica) or value.whole is None:
        return value.parts
    elif value.is_lifted:
        array, shape, take = value.array, value.array.shape[1:], _rows_alone
    else:
        array, take = value.array, shards
        shape = (array.shape[0] // replicas.count, *array.shape[1:])
    if not is_traced(array):
        return value.parts
    results = [jax.ShapeDtypeStruct(shape, array.dtype)] * replicas.local_count
    return later(take, results, array)


def _rows_alone(array: Any) -> list[Any]:
    return [part[0] for part in shards(array)]
