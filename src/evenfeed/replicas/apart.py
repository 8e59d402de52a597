"""Runs a traced function whose parts differ in shape from replica to replica.

The function is still traced once for each kind of arguments. What it does across replicas is then
done step by step, and its `run` in pieces for each replica (`segments`).
"""

# JAX leaves parts of its own types unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from evenfeed.core.jax_door import jax, jnp
from evenfeed.replicas import contexts
from evenfeed.replicas.collectives import reduce_inside, sums_over
from evenfeed.replicas.later import later, parts_here
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
    """Trace a function for each shape of a replica's part, and add it to the trace that goes on.

    It is traced for the shapes that other workers have too: all must do the same things together.
    """
    outer: Staging = contexts.staging()
    replicas = outer.over = site.replicas
    inputs, tree = leaves_of((args, kwargs))
    places = [i for i, leaf in enumerate(inputs) if isinstance(leaf, (PerReplica, Mirrored))]
    variables = [v for v in outer.values if getattr(v, "replicas", None) is replicas]
    columns = [_column(inputs[i], replicas) for i in places]
    traces: dict[Any, _Trace] = {}
    every: list[_Trace] = []
    for replica in range(replicas.count):
        looks = tuple((column.shapes[replica], column.dtypes[replica]) for column in columns)
        if looks not in traces:
            with noted(f"while its function was traced for replica {replica} of {replicas.count}."):
                arguments = (inputs, tree, places)
                traces[looks] = _Trace(site, function, outer, variables, arguments, looks)
        every.append(traces[looks])
    _check_alike(every)
    stacks = [outer.values[variable] for variable in variables]
    joined = _Joined(replicas, every, len(columns), len(stacks), Watch(function, _rows(columns)))
    flat = [
        *stacks,
        *(v for r, t in enumerate(joined.own) for v in (*t.consts, *(c.parts[r] for c in columns))),
    ]
    results = later(joined, joined.results(stacks, variables), *flat)
    return joined.regrouped(results, outer)


@final
@dataclass(frozen=True, slots=True)
class _Column:
    """One argument of a function that has a part for each replica.

    Attributes:
        parts: Those of this worker's replicas.
        shapes: Those of all parts.
        dtypes: Those of all parts.
    """

    parts: Sequence[Any]
    shapes: Sequence[tuple[int, ...]]
    dtypes: Sequence[Any]


def _column(value: "PerReplica | Mirrored", replicas: Replicas) -> _Column:
    parts = [as_tensor(part) for part in parts_here(value, replicas)]
    if not replicas.spans:
        return _Column(parts, [part.shape for part in parts], [part.dtype for part in parts])
    dtypes = [parts[0].dtype] * replicas.count
    if isinstance(value, Mirrored) or value.whole is not None:
        return _Column(parts, [parts[0].shape] * replicas.count, dtypes)
    if value.shapes is None:  # the function itself made it
        raise Unstaged("it is not known what other workers have of a value", expected=True)
    return _Column(parts, value.shapes, dtypes)


def _rows(columns: Sequence[_Column]) -> list[int]:
    """Return how many rows each replica has, of the first value whose parts differ in that."""
    for column in columns:
        lengths = [shape[0] if shape else 1 for shape in column.shapes]
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
        looks: Sequence[tuple[tuple[int, ...], Any]],
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
            struct((), jnp.int32), copies, [struct(shape, dtype) for shape, dtype in looks]
        )
        self.cut: Cut = cut(closed, closed.jaxpr.invars[0])
        self.consts = list(closed.consts)
        self.results = list(closed.out_avals)


@final
class _Joined:
    """Runs the pieces of this worker's replicas, one after the other, and what all do between them.

    Args:
        replicas: The replicas.
        traces: Their functions, those of other workers too.
        columns: How many parts each gets.
        stacks: How many variables there are.
        watch: Counts the steps.

    Attributes:
        own: The functions of this worker's replicas.
    """

    def __init__(
        self, replicas: Replicas, traces: Sequence[_Trace], columns: int, stacks: int, watch: Watch
    ) -> None:
        self._watch = watch
        self._replicas = replicas
        self._traces = traces
        self.own = traces[replicas.first : replicas.first + replicas.local_count]
        self._columns = columns
        self._stacks = stacks
        self._written = self.own[0].outputs.written
        self._tensors = len(self.own[0].results) - len(self._written)

    @cached_property
    def _numbers(self) -> list[Any]:
        """Who is who, on their devices; made when it first runs, not while it is traced."""
        first, place = self._replicas.first, self._replicas.to_replica
        return [place(np.int32(first + r), r) for r in range(self._replicas.local_count)]

    def results(self, stacks: Sequence[Any], variables: Sequence[Any]) -> list[Any]:
        """Return the shapes of what it returns: each replica's results, then whole variables."""
        each = [aval for trace in self.own for aval in trace.results[: self._tensors]]
        whole = dict(zip(variables, stacks, strict=True))
        return [*each, *(whole[variable] for variable in self._written)]

    def __call__(self, *flat: Any) -> list[Any]:
        """Run."""
        self._watch.step()
        held = self._begin(flat)
        summed: list[list[Any]] = [[] for _ in self.own]
        count = len(self.own[0].cut.segments)
        for place in range(count):
            operands = [self._step(place, r, held[r], summed[r]) for r in range(len(held))]
            if place + 1 < count:
                summed = sums_over(self._replicas, operands)
        ends = [self._end(replica, held[replica]) for replica in range(len(held))]
        tensors = [value for row in ends for value in row[: self._tensors]]
        rows = zip(*(row[self._tensors :] for row in ends), strict=True)
        return [*tensors, *(self._replicas.joined(row) for row in rows)]

    def _begin(self, flat: Sequence[Any]) -> list[dict[Any, Any]]:
        copies = [shards(stack) for stack in flat[: self._stacks]]
        rest = iter(flat[self._stacks :])
        held: list[dict[Any, Any]] = []
        for replica, trace in enumerate(self.own):
            consts = [self._replicas.to_replica(next(rest), replica) for _ in trace.consts]
            parts = [self._replicas.to_replica(next(rest), replica) for _ in range(self._columns)]
            number = self._numbers[replica]
            own = [*consts, number, *(copy[replica] for copy in copies), *parts]
            held.append(dict(zip(trace.cut.inputs, own, strict=True)))
        return held

    def _step(self, place: int, replica: int, held: dict[Any, Any], summed: list[Any]) -> list[Any]:
        segment = self.own[replica].cut.segments[place]
        with jax.default_device(self._replicas.local_devices[replica]):
            gives, operands = segment.run([held[name] for name in segment.needs], summed)
        held.update(zip(segment.gives, gives, strict=True))
        return operands

    def _end(self, replica: int, held: dict[Any, Any]) -> list[Any]:
        """Return what a replica's function returns, its constants too on its device."""
        return [
            self._replicas.to_replica(jnp.asarray(o.val), replica) if hasattr(o, "val") else held[o]
            for o in self.own[replica].cut.outputs
        ]

    def regrouped(self, results: list[Any], outer: Staging) -> Any:
        """Return what the replicas returned, and let the variables hold what they assigned."""
        count = len(self.own)
        for variable, stack in zip(self._written, results[count * self._tensors :], strict=True):
            outer.write(variable, stack)
        rows = [results[r * self._tensors : (r + 1) * self._tensors] for r in range(count)]
        values = [self._value(k, [row[k] for row in rows]) for k in range(self._tensors)]
        return regrouped([trace.outputs.filled(values) for trace in self.own], self._replicas)

    def _value(self, place: int, parts: Sequence[Any]) -> PerReplica:
        if not self._replicas.spans:
            return PerReplica(parts)
        shapes = tuple(tuple(trace.results[place].shape) for trace in self._traces)
        return PerReplica(parts, replicas=self._replicas, shapes=shapes)
