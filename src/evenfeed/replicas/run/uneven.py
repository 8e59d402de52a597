"""Runs a traced function whose parts differ in shape from replica to replica.

The function is still traced once per signature. Its cross-replica part is then evaluated equation by equation, and its
`run` in segments for each replica (`uneven_segments`).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, final

import numpy as np

from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.replicas import contexts
from evenfeed.replicas.collectives.collective import Collective
from evenfeed.replicas.function.closures import spread_arrays, with_swapped
from evenfeed.replicas.function.left_tracers import call_traced
from evenfeed.replicas.function.modified_arguments import GivenArguments
from evenfeed.replicas.function.outputs import Outputs, as_tensor
from evenfeed.replicas.function.staging import Staging, Unstaged
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.mirrored_values import Mirrored
from evenfeed.replicas.regrouping import leaves_of, packed, regrouped
from evenfeed.replicas.replica_context import Replica, Site, drawing_for, noted
from evenfeed.replicas.run.common_results import Common, CommonTrace, common_results
from evenfeed.replicas.run.host_callback import call_on_host, parts_here
from evenfeed.replicas.run.uneven_segments import Cut, cut, results_of_collectives, run_collectives
from evenfeed.replicas.run.uneven_warning import Watch
from evenfeed.replicas.tape.replay import one_forward_pass
from evenfeed.replicas.values import PerReplica
from evenfeed.tensors.device_arrays import is_traced


@final
class UnevenReplica(Replica):
    """A replica whose function is traced for its own shapes."""

    def __init__(self, replicas: Replicas, index: Any) -> None:
        self.replicas = replicas
        self._index = index

    @property
    def index(self) -> Any:
        return self._index

    def perform(self, collective: Collective, arrays: Sequence[Any]) -> list[Any]:
        """Perform it between two segments."""
        own = [self._tied(array) for array in arrays]
        return collective.uneven(self.replicas, self._index, own)

    def _tied(self, array: Any) -> Any:
        """Make a constant depend on this replica: JAX assumes that it is the same on all replicas."""
        if is_traced(array):
            return array
        return jnp.where(self._index >= 0, array, jnp.zeros_like(array))

    def merge(self, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Give up: the values of the other replicas are not available."""
        del function, args, kwargs
        raise Unstaged("merge_call on parts that differ in shape", expected=True)


def run_uneven(site: Site, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    """Trace a function for each shape of a replica's part, and add it to the current trace.

    It is traced for the shapes of other workers too, because all workers must run the same collectives.
    """
    outer = contexts.here.stagings[-1]
    replicas = outer.over = site.replicas
    leaves, tree = leaves_of((args, kwargs))
    spread = [x for x in spread_arrays(function, leaves) if x.is_fully_replicated]
    inputs = [*leaves, *(Mirrored(array=array, count=replicas.count) for array in spread)]
    places = [i for i, leaf in enumerate(inputs) if isinstance(leaf, (PerReplica, Mirrored))]
    variables = [v for v in outer.values if getattr(v, "replicas", None) is replicas]
    columns = [_column(inputs[i], replicas) for i in places]
    traces: dict[Any, _Trace] = {}
    every: list[_Trace] = []
    for replica in range(replicas.count):
        avals = tuple((column.shapes[replica], column.dtypes[replica]) for column in columns)
        if avals not in traces:
            with noted(f"while its function was traced for replica {replica} of {replicas.count}."):
                arguments = _Arguments(GivenArguments(args, kwargs), inputs, tree, places, spread)
                traces[avals] = _Trace(site, function, outer, variables, arguments, avals)
        every.append(traces[avals])
    stacks = [outer.values[variable] for variable in variables]
    pieces = _Pieces(every, spans=replicas.spans)
    joined = _UnevenProgram(
        replicas,
        pieces,
        len(columns),
        variables,
        Watch(function, _rows(columns)),
    )
    flat = [
        *stacks,
        *(v for r, t in enumerate(joined.own) for v in (*t.consts, *(c.parts[r] for c in columns))),
    ]
    results = call_on_host(joined, joined.results(stacks), *flat)
    return joined.regrouped(results, outer)


@final
@dataclass(frozen=True, slots=True)
class _Column:
    """One argument that has a part for each replica.

    Attributes:
        parts: The parts of this worker's replicas.
        shapes: The shapes of all parts.
        dtypes: The dtypes of all parts.
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
        raise Unstaged("the values of other workers are not known", expected=True)
    return _Column(parts, value.shapes, dtypes)


def _rows(columns: Sequence[_Column]) -> list[int]:
    """Return the number of rows of each replica, from the first value in which it differs."""
    for column in columns:
        lengths = [shape[0] if shape else 1 for shape in column.shapes]
        if len(set(lengths)) > 1:
            return lengths
    return []


@final
@dataclass(frozen=True, slots=True)
class _Arguments:
    """The arguments of a function.

    Attributes:
        whole: The arguments as given.
        inputs: The leaves of the arguments, then the arrays of `spread`.
        tree: The structure of the arguments.
        places: The indices of the inputs that have a part for each replica.
        spread: Arrays on all devices that the function takes or closes over.
    """

    whole: GivenArguments
    inputs: list[Any]
    tree: Any
    places: list[int]
    spread: list[Any]

    def of_replica(self, function: Callable[..., Any], own: Sequence[Any]) -> Callable[[], Any]:
        """Return a call of the function with one replica's parts."""
        leaves = list(self.inputs)
        for place, part in zip(self.places, own, strict=True):
            leaves[place] = part
        count = len(leaves) - len(self.spread)
        replacements = {id(array): x for array, x in zip(self.spread, leaves[count:], strict=True)}
        args, kwargs = packed(
            self.tree, [replacements.get(id(leaf), leaf) for leaf in leaves[:count]]
        )
        called = (
            with_swapped(function, lambda x: replacements.get(id(x), x))
            if replacements
            else function
        )
        return lambda: call_traced(called, args, kwargs, self.whole)


@final
class _Trace:
    """A replica's function, traced for one shape of its part."""

    def __init__(  # noqa: PLR0913, PLR0917 - what a trace is of
        self,
        site: Site,
        function: Callable[..., Any],
        outer: Staging,
        variables: Sequence[Any],
        arguments: _Arguments,
        avals: Sequence[tuple[tuple[int, ...], Any]],
    ) -> None:
        replicas = site.replicas
        self.outputs = Outputs()
        repeated: list[tuple[Any, Any]] = []

        def traced(index: Any, copies: list[Any], own: list[Any]) -> list[Any]:
            values = {**outer.values, **{v: c[0] for v, c in zip(variables, copies, strict=True)}}
            staging = Staging(values, replicas)
            call = arguments.of_replica(function, own)
            with (
                site.inside(UnevenReplica(replicas, index)),
                contexts.staged(staging),
                drawing_for(replicas),
            ):
                found = self.outputs.of(call(), staging)
            repeated.extend(staging.repeated)
            count = len(found) - len(self.outputs.written)
            return [*found[:count], *(value[None] for value in found[count:])]

        struct = jax.ShapeDtypeStruct
        copies = [struct((1, *outer.values[v].shape[1:]), outer.values[v].dtype) for v in variables]
        closed = jax.make_jaxpr(traced, axis_env=replicas.axis_env)(
            struct((), jnp.int32), copies, [struct(shape, dtype) for shape, dtype in avals]
        )
        closed = one_forward_pass(closed, repeated)
        first = 1 + len(variables)
        given = enumerate(arguments.inputs[place] for place in arguments.places)
        same = frozenset(first + i for i, value in given if isinstance(value, Mirrored))
        self.axes = replicas.axes
        self.common = CommonTrace(closed, same, results_of_collectives(closed, replicas.axes))
        self.closed = closed
        self.consts = list(closed.consts)
        self.results = list(closed.out_avals)

    @property
    def tensors(self) -> int:
        """The number of results; the new values of variables follow them."""
        return len(self.results) - len(self.outputs.written)


@final
class _Pieces:
    """The functions of all replicas, cut at their collectives.

    Args:
        traces: The traces of all replicas, including those of other workers.
        spans: Whether there are other workers. Then inputs that all replicas here share may differ between workers.

    Attributes:
        traces: The same.
        cuts: The segments by replica, which compute what may differ between replicas.
        common: The results that all replicas compute in the same way.
        own: The indices of the results that may differ between replicas.
    """

    def __init__(self, traces: Sequence[_Trace], *, spans: bool) -> None:
        self.traces = traces
        kinds = list({id(trace): trace for trace in traces}.values())
        _check_results(kinds)
        every = range(kinds[0].tensors)
        # The state of a worker's own objects stays local to it.
        asked = every[len(every) - kinds[0].outputs.carried :] if spans else every
        self.common: Common = common_results([trace.common for trace in kinds], asked)
        self.own = [k for k in every if k not in self.common.places]
        self._needs = {id(t): needs for t, needs in zip(kinds, self.common.needs, strict=True)}
        cuts = {id(trace): self._cut(trace) for trace in kinds}
        self.cuts: list[Cut] = [cuts[id(trace)] for trace in traces]
        if len({found.collectives for found in cuts.values()}) > 1:
            raise _different_programs()

    def needs(self, trace: _Trace) -> tuple[Any, ...]:
        """Return the variables of a replica's function that the common program needs."""
        return self._needs[id(trace)]

    def _cut(self, trace: _Trace) -> Cut:
        jaxpr = trace.closed.jaxpr
        written = jaxpr.outvars[trace.tensors :]
        own = [jaxpr.outvars[k] for k in self.own]
        wanted = [*own, *written, *self.needs(trace)]
        return cut(trace.closed, jaxpr.invars[0], trace.axes, wanted)


def _check_results(traces: Sequence[_Trace]) -> None:
    if any(trace.outputs.kind != traces[0].outputs.kind for trace in traces[1:]):
        raise _different_programs()


def _different_programs() -> Unstaged:
    return Unstaged("the replicas run different computations on their parts", expected=True)


@final
class _UnevenProgram:
    """Runs the segments of this worker's replicas in turn, and the collectives between them.

    Args:
        replicas: The replicas.
        pieces: The functions of all replicas, including those of other workers.
        columns: The number of parts that each replica gets.
        variables: The variables.
        watch: Counts the steps.

    Attributes:
        own: The functions of this worker's replicas.
    """

    def __init__(
        self,
        replicas: Replicas,
        pieces: _Pieces,
        columns: int,
        variables: Sequence[Any],
        watch: Watch,
    ) -> None:
        self._watch = watch
        self._replicas = replicas
        self._pieces = pieces
        self.own = replicas.own_entries(pieces.traces)
        self._cuts = replicas.own_entries(pieces.cuts)
        self._columns = columns
        self._variables = variables
        self._written = self.own[0].outputs.written

    @cached_property
    def _numbers(self) -> list[Any]:
        """The replica indices, on their devices. Created at the first run, not during the trace."""
        place = self._replicas.to_replica
        return [place(np.int32(replica), r) for r, replica in enumerate(self._replicas.own)]

    def results(self, stacks: Sequence[Any]) -> list[Any]:
        """Return the result shapes: each replica's results, the common results, then whole variables."""
        each = [trace.results[k] for trace in self.own for k in self._pieces.own]
        common = [self.own[0].results[k] for k in self._pieces.common.places]
        whole = dict(zip(self._variables, stacks, strict=True))
        return [*each, *common, *(whole[variable] for variable in self._written)]

    def __call__(self, *flat: Any) -> list[Any]:
        self._watch.step()
        held = self._inputs(flat)
        received: list[list[Any]] = [[] for _ in self.own]
        for place, calls in enumerate(self._cuts[0].collectives):
            operands = [self._run_segment(place, r, held[r], received[r]) for r in range(len(held))]
            if calls:
                received = run_collectives(self._replicas, calls, operands)
        ends = [self._outputs(replica, held[replica]) for replica in range(len(held))]
        own, written = len(self._pieces.own), len(self._written)
        tensors = [value for row in ends for value in row[:own]]
        rows = zip(*(row[own : own + written] for row in ends), strict=True)
        common = self._common([row[own + written :] for row in ends])
        stacks = [v.stack_of(row) for v, row in zip(self._written, rows, strict=True)]
        return [*tensors, *common, *stacks]

    def _inputs(self, flat: Sequence[Any]) -> list[dict[Any, Any]]:
        copies = [v.rows_of(x) for v, x in zip(self._variables, flat, strict=False)]
        rest = iter(flat[len(self._variables) :])
        held: list[dict[Any, Any]] = []
        for replica, trace in enumerate(self.own):
            consts = [self._replicas.to_replica(next(rest), replica) for _ in trace.consts]
            parts = [self._replicas.to_replica(next(rest), replica) for _ in range(self._columns)]
            number = self._numbers[replica]
            own = [*consts, number, *(copy[replica] for copy in copies), *parts]
            held.append(dict(zip(self._cuts[replica].inputs, own, strict=True)))
        return held

    def _run_segment(
        self, place: int, replica: int, held: dict[Any, Any], received: list[Any]
    ) -> list[Any]:
        segment = self._cuts[replica].segments[place]
        with jax.default_device(self._replicas.local_devices[replica]):
            gives, operands = segment.run([held[name] for name in segment.needs], received)
        held.update(zip(segment.gives, gives, strict=True))
        return operands

    def _outputs(self, replica: int, held: dict[Any, Any]) -> list[Any]:
        """Return the outputs of a replica's function, with constants on its device."""
        return [
            self._replicas.to_replica(jnp.asarray(o.val), replica) if hasattr(o, "val") else held[o]
            for o in self._cuts[replica].outputs
        ]

    def _common(self, given: Sequence[Sequence[Any]]) -> list[Any]:
        """Compute the common results, with the same program on each device."""
        if not self._pieces.common.places:
            return []
        rows: list[list[Any]] = []
        for replica, values in enumerate(given):
            with jax.default_device(self._replicas.local_devices[replica]):
                rows.append(self._pieces.common.run(*values))
        return [self._replicas.held_alike(copies) for copies in zip(*rows, strict=True)]

    def regrouped(self, results: list[Any], outer: Staging) -> Any:
        """Return what the replicas returned, and write the variables that they assigned."""
        count, places = len(self.own), self._pieces.own
        common = self._pieces.common.places
        first = count * len(places)
        left = results[first + len(common) :]
        for variable, stack in zip(self._written, left, strict=True):
            outer.write(variable, stack)
        values: dict[int, Any] = {
            place: Mirrored(array=array, count=self._replicas.count)
            for place, array in zip(common, results[first:], strict=False)
        }
        for column, place in enumerate(places):
            values[place] = self._value(place, results[column : first : len(places)])
        ordered = [values[place] for place in range(len(values))]
        return regrouped([trace.outputs.filled(ordered) for trace in self.own], self._replicas)

    def _value(self, place: int, parts: Sequence[Any]) -> PerReplica:
        if not self._replicas.spans:
            return PerReplica(parts)
        shapes = tuple(tuple(trace.results[place].shape) for trace in self._pieces.traces)
        return PerReplica(parts, replicas=self._replicas, shapes=shapes)
