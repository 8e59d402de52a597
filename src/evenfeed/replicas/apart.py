"""Runs a traced function whose parts differ in shape from replica to replica.

The function is still traced once for each kind of arguments. What it does across replicas is then
done step by step, and its `run` in pieces for each replica (`segments`).
"""

# JAX leaves parts of its own types unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Callable, Sequence
from functools import cache, cached_property
from typing import Any, final

import numpy as np

from evenfeed.core.errors import UnimplementedError
from evenfeed.core.jax_door import jax, jax_extend_core, jnp
from evenfeed.replicas import contexts
from evenfeed.replicas.collectives import reduce_inside, sums_over
from evenfeed.replicas.mesh import AXIS, Replicas, shards
from evenfeed.replicas.outputs import Outputs, as_tensor
from evenfeed.replicas.reduction import ReduceOp
from evenfeed.replicas.regrouping import leaves_of, packed, regrouped
from evenfeed.replicas.replica import Replica, noted
from evenfeed.replicas.replica_context import Site
from evenfeed.replicas.segments import Cut, cut
from evenfeed.replicas.staging import Staging, Unstaged
from evenfeed.replicas.steady import Watch
from evenfeed.replicas.values import Mirrored, PerReplica
from evenfeed.tensors.placement import is_traced


@cache
def _later() -> Any:
    """Return the operation that is done in Python, when a trace is run step by step."""
    operation = jax_extend_core.Primitive("evenfeed_later")
    operation.multiple_results = True
    operation.def_impl(_do)
    operation.def_abstract_eval(_look)
    return operation


def _do(*values: Any, call: Callable[..., Sequence[Any]], results: Sequence[Any]) -> Sequence[Any]:
    del results
    return call(*values)


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


@final
class ApartReplica(Replica):
    """A replica whose function is traced for shapes of its own."""

    def __init__(self, replicas: Replicas, index: Any) -> None:
        self.replicas = replicas
        self._index = index

    @property
    def index(self) -> Any:
        """Return which one, as a tensor."""
        return self._index

    def all_reduce(self, op: ReduceOp, arrays: Sequence[Any]) -> list[Any]:
        """Reduce between two pieces."""
        return reduce_inside(op, [self._own(array) for array in arrays], self.replicas.count)

    def _own(self, array: Any) -> Any:
        """Tie a constant to this replica: JAX would multiply it instead of summing everybody's."""
        if is_traced(array):
            return array
        return jnp.where(self._index >= 0, array, jnp.zeros_like(array))

    def all_gather(self, arrays: Sequence[Any], axis: int) -> list[Any]:
        """Give up: the lengths of the others are not known here."""
        del arrays, axis
        raise Unstaged("all_gather of parts that differ in shape", expected=True)

    def from_first(self, array: Any) -> Any:
        """Take replica 0's, between two pieces."""
        own = jnp.where(self._index == 0, array, jnp.zeros_like(array))
        return jax.lax.psum(own, AXIS)

    def merge(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Give up: the values of the others are not there."""
        del function, args, kwargs
        raise Unstaged("merge_call on parts that differ in shape", expected=True)


def run_apart(site: Site, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Trace a function for each shape of a replica's part, and add it to the trace that goes on."""
    outer: Staging = contexts.staging()
    replicas = site.replicas
    if replicas.spans:
        raise UnimplementedError(
            "Parts that differ in shape cannot run compiled on several workers yet.",
            fix="let all parts be equally long, or call run without evenfeed.function.",
        )
    inputs, tree = leaves_of((args, kwargs))
    places = [i for i, leaf in enumerate(inputs) if isinstance(leaf, (PerReplica, Mirrored))]
    variables = [v for v in outer.values if getattr(v, "replicas", None) is replicas]
    columns = [[as_tensor(part) for part in inputs[i].values] for i in places]
    traces: dict[Any, _Trace] = {}
    own: list[_Trace] = []
    for replica in range(replicas.count):
        parts = [column[replica] for column in columns]
        look = tuple((part.shape, str(part.dtype)) for part in parts)
        if look not in traces:
            with noted(f"while its function was traced for replica {replica} of {replicas.count}."):
                arguments = (inputs, tree, places)
                traces[look] = _Trace(site, function, outer, variables, arguments, parts)
        own.append(traces[look])
    _check_alike(own)
    consts = [trace.consts for trace in own]
    stacks = [outer.values[variable] for variable in variables]
    watch = Watch(function, _rows(columns))
    joined = _Joined(replicas, own, len(columns), len(stacks), watch)
    flat = [
        *stacks,
        *(v for r in range(replicas.count) for v in (*consts[r], *(c[r] for c in columns))),
    ]
    results = later(joined, joined.results(stacks, variables), *flat)
    return joined.regrouped(results, outer)


def _rows(columns: Sequence[Sequence[Any]]) -> list[int]:
    """Return how many rows each replica has, of the first value whose parts differ in that."""
    for column in columns:
        lengths = [part.shape[0] if part.shape else 1 for part in column]
        if len(set(lengths)) > 1:
            return lengths
    return []


def _check_alike(traces: Sequence["_Trace"]) -> None:
    first = traces[0]
    for trace in traces[1:]:
        if (
            trace.cut.collectives != first.cut.collectives
            or trace.outputs.kind != first.outputs.kind
        ):
            raise Unstaged("the replicas do different things with their parts", expected=True)


@final
class _Trace:
    """A replica's function, traced for one shape of its part."""

    def __init__(  # noqa: PLR0913, PLR0917 - what a trace is of
        self,
        site: Site,
        function: Callable[..., Any],
        outer: Staging,
        variables: Sequence[Any],
        arguments: tuple[list[Any], Any, list[int]],
        parts: Sequence[Any],
    ) -> None:
        inputs, tree, places = arguments
        replicas = site.replicas
        self.outputs = Outputs()

        def traced(index: Any, copies: list[Any], own: list[Any]) -> list[Any]:
            values = {**outer.values, **{v: c[0] for v, c in zip(variables, copies, strict=True)}}
            staging = Staging(values, replicas)
            leaves = list(inputs)
            for place, part in zip(places, own, strict=True):
                leaves[place] = part
            own_args, own_kwargs = packed(tree, leaves)
            with site.inside(ApartReplica(replicas, index)), contexts.staged(staging):
                found = self.outputs.of(function(*own_args, **own_kwargs), staging)
            count = len(found) - len(self.outputs.written)
            return [*found[:count], *(value[None] for value in found[count:])]

        struct = jax.ShapeDtypeStruct
        copies = [struct((1, *outer.values[v].shape[1:]), outer.values[v].dtype) for v in variables]
        closed = jax.make_jaxpr(traced, axis_env=[(AXIS, replicas.count)])(
            struct((), jnp.int32), copies, [struct(p.shape, p.dtype) for p in parts]
        )
        self.cut: Cut = cut(closed, closed.jaxpr.invars[0])
        self.consts = list(closed.consts)
        self.results = list(closed.out_avals)


@final
class _Joined:
    """Runs the pieces of all replicas, one after the other, and what is between them."""

    def __init__(
        self, replicas: Replicas, traces: Sequence[_Trace], columns: int, stacks: int, watch: Watch
    ) -> None:
        self._watch = watch
        self._replicas = replicas
        self._traces = traces
        self._columns = columns
        self._stacks = stacks
        self._written = traces[0].outputs.written
        self._tensors = len(traces[0].results) - len(self._written)

    @cached_property
    def _numbers(self) -> list[Any]:
        """Who is who, on their devices; made when it first runs, not while it is traced."""
        place = self._replicas.to_replica
        return [place(np.int32(replica), replica) for replica in range(self._replicas.count)]

    def results(self, stacks: Sequence[Any], variables: Sequence[Any]) -> list[Any]:
        """Return the shapes of what it returns: each replica's results, then whole variables."""
        each = [aval for trace in self._traces for aval in trace.results[: self._tensors]]
        whole = dict(zip(variables, stacks, strict=True))
        return [*each, *(whole[variable] for variable in self._written)]

    def __call__(self, *flat: Any) -> list[Any]:
        """Run."""
        self._watch.step()
        held = self._begin(flat)
        summed: list[list[Any]] = [[] for _ in self._traces]
        count = len(self._traces[0].cut.segments)
        for place in range(count):
            operands = [self._step(place, r, held[r], summed[r]) for r in range(len(held))]
            if place + 1 < count:
                summed = sums_over(self._replicas, operands)
        ends = [
            [_value(h, o) for o in t.cut.outputs] for h, t in zip(held, self._traces, strict=True)
        ]
        tensors = [value for row in ends for value in row[: self._tensors]]
        rows = zip(*(row[self._tensors :] for row in ends), strict=True)
        return [*tensors, *(self._replicas.joined(row) for row in rows)]

    def _begin(self, flat: Sequence[Any]) -> list[dict[Any, Any]]:
        copies = [shards(stack) for stack in flat[: self._stacks]]
        rest = iter(flat[self._stacks :])
        held: list[dict[Any, Any]] = []
        for replica, trace in enumerate(self._traces):
            consts = [self._replicas.to_replica(next(rest), replica) for _ in trace.consts]
            parts = [self._replicas.to_replica(next(rest), replica) for _ in range(self._columns)]
            number = self._numbers[replica]
            own = [*consts, number, *(copy[replica] for copy in copies), *parts]
            held.append(dict(zip(trace.cut.inputs, own, strict=True)))
        return held

    def _step(self, place: int, replica: int, held: dict[Any, Any], summed: list[Any]) -> list[Any]:
        segment = self._traces[replica].cut.segments[place]
        with jax.default_device(self._replicas.devices[replica]):
            gives, operands = segment.run([held[name] for name in segment.needs], summed)
        held.update(zip(segment.gives, gives, strict=True))
        return operands

    def regrouped(self, results: list[Any], outer: Staging) -> Any:
        """Return what the replicas returned, and let the variables hold what they assigned."""
        count = self._replicas.count
        for variable, stack in zip(self._written, results[count * self._tensors :], strict=True):
            outer.write(variable, stack)
        rows = [results[r * self._tensors : (r + 1) * self._tensors] for r in range(count)]
        return regrouped(
            [trace.outputs.filled(row) for trace, row in zip(self._traces, rows, strict=True)]
        )


def _value(held: dict[Any, Any], atom: Any) -> Any:
    return jnp.asarray(atom.val) if hasattr(atom, "val") else held[atom]
