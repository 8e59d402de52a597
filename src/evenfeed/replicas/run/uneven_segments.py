"""Cuts the trace of one replica's function into segments at its collectives.

Replicas whose parts differ in shape cannot run one program. Each runs its own segments, compiled for its shapes.
Between the segments, one program over all devices performs the collectives.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, final

from evenfeed.core.lazy_jax import jax, jax_extend_core, jnp
from evenfeed.replicas.collectives.device_programs import mapped_over, run_together
from evenfeed.replicas.device_shards import shards
from evenfeed.replicas.function.staging import Unstaged
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.run.varying import (
    communicates,
    equations_in,
    gives_all_the_same,
    is_variable,
)


@final
@dataclass(frozen=True, slots=True)
class Segment:
    """One segment of a replica's function.

    Attributes:
        run: The compiled segment. Takes its inputs, then the results of the collective before it, each with a leading
            axis of length one. Returns its outputs, then the operands of the collective after it, again with that axis.
        needs: The variables that it takes.
        gives: The variables that it returns for later segments.
    """

    run: Callable[..., Any]
    needs: tuple[Any, ...]
    gives: tuple[Any, ...]


@final
@dataclass(frozen=True, slots=True)
class CollectiveCall:
    """An equation of a collective.

    Attributes:
        primitive: The JAX primitive.
        params: Its parameters.
        operands: The shapes and dtypes of its operands.
    """

    primitive: Any
    params: tuple[tuple[str, Any], ...]
    operands: tuple[tuple[tuple[int, ...], str], ...]

    def bind(self, operands: Sequence[Any]) -> list[Any]:
        """Perform it on operands, inside a shard_map."""
        found = self.primitive.bind(*operands, **dict(self.params))
        return list(found) if self.primitive.multiple_results else [found]


@final
@dataclass(frozen=True, slots=True)
class Cut:
    """A replica's function in segments.

    Attributes:
        segments: The segments, in order.
        collectives: For each segment, the collectives after it; none after the last.
        inputs: The variables of the function's inputs, constants first.
        outputs: The variables or constants of its outputs.
    """

    segments: tuple[Segment, ...]
    collectives: tuple[tuple[CollectiveCall, ...], ...]
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]


def cut(closed: Any, index: Any, axes: Sequence[str], wanted: Sequence[Any] | None = None) -> Cut:
    """Cut a trace at its collectives.

    Args:
        closed: The closed jaxpr. Its first input is the replica's index.
        index: The variable of that input.
        axes: The axes that replicas differ along.
        wanted: The variables to return; by default the results.

    Raises:
        Unstaged: The trace has a collective inside a loop or a branch, or one that does not give all replicas the
            same results.
    """
    jaxpr = closed.jaxpr
    same = {e.outvars[0]: index for e in jaxpr.eqns if e.primitive.name == "axis_index"}
    layers = _layers(jaxpr, axes)
    found = jaxpr.outvars if wanted is None else wanted
    outputs = tuple(same.get(var, var) if is_variable(var) else var for var in found)
    collectives = tuple(tuple(layer.calls) for layer in layers)
    inputs = (*jaxpr.constvars, *jaxpr.invars)
    segments = _segments(layers, outputs, same, jaxpr.debug_info)
    return Cut(segments, collectives, inputs, outputs)


def results_of_collectives(closed: Any, axes: Sequence[str]) -> dict[Any, tuple[int, int]]:
    """Return the results of collectives: for each variable, its layer and its position there.

    Raises:
        Unstaged: As for `cut`.
    """
    layers = enumerate(_layers(closed.jaxpr, axes))
    return {var: (depth, p) for depth, layer in layers for p, var in enumerate(layer.results)}


def run_collectives(
    replicas: Replicas, calls: tuple[CollectiveCall, ...], operands: Sequence[Sequence[Any]]
) -> list[list[Any]]:
    """Perform the collectives between two segments, in one program.

    Args:
        replicas: The replicas.
        calls: The collectives.
        operands: For each replica of this worker, the operands of all calls, each with a leading axis of length one.

    Returns:
        For each replica of this worker, the results, each with that axis.
    """
    columns = [replicas.joined(column) for column in zip(*operands, strict=True)]
    program = replicas.session.program(calls, partial(_program, replicas, calls))
    found = run_together(replicas, program, columns)
    return [list(row) for row in zip(*map(shards, found), strict=True)]


def _program(replicas: Replicas, calls: tuple[CollectiveCall, ...]) -> Callable[[Any], Any]:
    def together(columns: list[Any]) -> list[Any]:
        own = iter(columns)
        return [
            result[None]
            for call in calls
            for result in call.bind([next(own)[0] for _ in call.operands])
        ]

    return jax.jit(mapped_over(replicas, together))


@final
class _Layer:
    """The equations before some collectives, and the operands and results of these."""

    def __init__(self) -> None:
        self.equations: list[Any] = []
        self.operands: list[Any] = []
        self.results: list[Any] = []
        self.calls: list[CollectiveCall] = []

    def add(self, collective: Any) -> None:
        """Add the equation of a collective."""
        avals = [(tuple(v.aval.shape), str(v.aval.dtype)) for v in collective.invars]
        params = tuple(sorted(collective.params.items()))
        self.calls.append(CollectiveCall(collective.primitive, params, tuple(avals)))
        self.operands += collective.invars
        self.results += collective.outvars


def _layers(jaxpr: Any, axes: Sequence[str]) -> list[_Layer]:
    """Group the equations of a trace by how many collectives they follow.

    Independent collectives, such as the sums of the leaves of a pytree, run in one program.
    """
    layers = [_Layer()]
    depths: dict[Any, int] = {}
    done = 0  # side effects keep their order
    for equation in jaxpr.eqns:
        if equation.primitive.name == "axis_index" and len(axes) == 1:
            continue  # the replica's index is an input
        depth = max((depths.get(var, 0) for var in equation.invars if is_variable(var)), default=0)
        if equation.effects:
            depth = done = max(depth, done)
        if gives_all_the_same(equation, axes):
            layers[depth].add(equation)
            depth += 1
            if depth == len(layers):
                layers.append(_Layer())
        elif _has_collective(equation, axes):
            raise Unstaged(
                "the replicas communicate inside a loop, a branch or a function", expected=True
            )
        else:
            layers[depth].equations.append(equation)
        depths.update((var, depth) for var in equation.outvars)
    return layers


def _segments(
    layers: Sequence[_Layer], outputs: Sequence[Any], same: dict[Any, Any], info: Any
) -> tuple[Segment, ...]:
    later: set[Any] = {var for var in outputs if is_variable(var)}
    made: list[Segment] = []
    for place in reversed(range(len(layers))):
        layer = layers[place]
        before = layers[place - 1].results if place else []
        produced = {var for e in layer.equations for var in e.outvars} | set(before)
        reads = [atom for e in layer.equations for atom in e.invars] + layer.operands
        names = dict.fromkeys(atom for atom in reads if is_variable(atom) and atom not in produced)
        gives = [var for var in produced if var in later]
        piece = jax_extend_core.Jaxpr(
            constvars=(),
            invars=[*names, *before],
            outvars=[*gives, *layer.operands],
            eqns=layer.equations,
            effects=frozenset[Any]().union(*(e.effects for e in layer.equations)),
            debug_info=info,
        )
        # Each read of the replica's index has its own variable; all have the same value.
        needs = tuple(same.get(name, name) for name in names)
        made.append(Segment(_compiled(piece, len(gives)), needs, tuple(gives)))
        later = (later - produced) | set(needs)
    return tuple(reversed(made))


def _compiled(piece: Any, gives: int) -> Callable[..., Any]:
    body = jax_extend_core.jaxpr_as_fun(jax_extend_core.ClosedJaxpr(piece, ()))

    def run(needed: list[Any], received: list[Any]) -> tuple[list[Any], list[Any]]:
        results = body(*needed, *(row[0] for row in received))
        return results[:gives], [jnp.asarray(operand)[None] for operand in results[gives:]]

    return jax.jit(run)


def _has_collective(equation: Any, axes: Sequence[str]) -> bool:
    """Return True if an equation, or one inside it, communicates with other replicas or reads the replica's index."""
    return any(
        communicates(inner, axes) or inner.primitive.name == "axis_index"
        for inner in equations_in(equation)
    )
