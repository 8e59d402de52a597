"""Cuts the trace of one replica's function at its collectives.

Replicas whose parts have other shapes cannot be one program. Each then runs pieces of its own, compiled
for its shapes; between the pieces, one program over all devices does what they do together.
"""

# JAX leaves parts of its own types unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

from evenfeed.core.lazy_jax import jax, jax_extend_core, jnp
from evenfeed.replicas.function.staging import Unstaged
from evenfeed.replicas.mesh import AXIS
from evenfeed.replicas.run.varying import is_name, speaks, steps


@final
@dataclass(frozen=True, slots=True)
class Segment:
    """A piece of a replica's function.

    Attributes:
        run: Compiled: takes what it needs, then what the collective before it gave, each with an axis
            of length one; returns what is needed later, then what goes into the collective after
            it, again with that axis.
        needs: The names of what it takes.
        gives: The names of what it returns for later.
    """

    run: Callable[..., Any]
    needs: tuple[Any, ...]
    gives: tuple[Any, ...]


@final
@dataclass(frozen=True, slots=True)
class Cut:
    """A replica's function in pieces.

    Attributes:
        segments: The pieces, in order.
        collectives: The shapes and dtypes of what is summed between them.
        inputs: The names of the function's inputs, its constants first.
        outputs: The names of what is wanted of it, or constants.
    """

    segments: tuple[Segment, ...]
    collectives: tuple[tuple[Any, ...], ...]
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]


def cut(closed: Any, index: Any, wanted: Sequence[Any] | None = None) -> Cut:
    """Cut a trace at its sums over the replicas.

    Args:
        closed: The trace; its first input is the number of the replica.
        index: That input.
        wanted: The names of what is wanted of it; by default its results.

    Raises:
        Unstaged: It meets the other replicas inside of a loop or a branch, or in another way.
    """
    jaxpr = closed.jaxpr
    same = {e.outvars[0]: index for e in jaxpr.eqns if e.primitive.name == "axis_index"}
    layers = _layers(jaxpr)
    found = jaxpr.outvars if wanted is None else wanted
    outputs = tuple(same.get(var, var) if is_name(var) else var for var in found)
    collectives = tuple(tuple(map(_look, layer.operands)) for layer in layers)
    inputs = (*jaxpr.constvars, *jaxpr.invars)
    segments = _segments(layers, outputs, same, jaxpr.debug_info)
    return Cut(segments, collectives, inputs, outputs)


def sums_of(closed: Any) -> dict[Any, tuple[int, int]]:
    """Return the sums over the replicas: by name, between which pieces, and which of those there.

    Raises:
        Unstaged: It meets the other replicas inside of a loop or a branch, or in another way.
    """
    layers = enumerate(_layers(closed.jaxpr))
    return {var: (depth, p) for depth, layer in layers for p, var in enumerate(layer.sums)}


@final
class _Layer:
    """What can be computed before a collective, and what goes into that and comes out of it."""

    def __init__(self) -> None:
        self.equations: list[Any] = []
        self.operands: list[Any] = []
        self.sums: list[Any] = []


def _layers(jaxpr: Any) -> list[_Layer]:
    """Sort the equations of a trace by how many collectives they come after.

    Sums that do not wait for each other are one collective: those of a nest, above all.
    """
    layers = [_Layer()]
    depths: dict[Any, int] = {}
    done = 0  # what is done to the world keeps its order
    for equation in jaxpr.eqns:
        if equation.primitive.name == "axis_index":  # the number of the replica is an input
            continue
        depth = max((depths.get(var, 0) for var in equation.invars if is_name(var)), default=0)
        if equation.effects:
            depth = done = max(depth, done)
        if _is_sum(equation):
            layers[depth].operands += equation.invars
            layers[depth].sums += equation.outvars
            depth += 1
            if depth == len(layers):
                layers.append(_Layer())
        elif _meets(equation):
            raise Unstaged(
                "the replicas meet inside of a loop, a branch or a function", expected=True
            )
        else:
            layers[depth].equations.append(equation)
        depths.update((var, depth) for var in equation.outvars)
    return layers


def _segments(
    layers: Sequence[_Layer], outputs: Sequence[Any], same: dict[Any, Any], info: Any
) -> tuple[Segment, ...]:
    later: set[Any] = {var for var in outputs if is_name(var)}
    made: list[Segment] = []
    for place in reversed(range(len(layers))):
        layer = layers[place]
        before = layers[place - 1].sums if place else []
        produced = {var for e in layer.equations for var in e.outvars} | set(before)
        reads = [atom for e in layer.equations for atom in e.invars] + layer.operands
        names = dict.fromkeys(atom for atom in reads if is_name(atom) and atom not in produced)
        gives = [var for var in produced if var in later]
        piece = jax_extend_core.Jaxpr(
            constvars=(),
            invars=[*names, *before],
            outvars=[*gives, *layer.operands],
            eqns=layer.equations,
            effects=frozenset[Any]().union(*(e.effects for e in layer.equations)),
            debug_info=info,
        )
        # A replica's number has one name for each time that it was asked for, and one value.
        needs = tuple(same.get(name, name) for name in names)
        made.append(Segment(_compiled(piece, len(gives)), needs, tuple(gives)))
        later = (later - produced) | set(needs)
    return tuple(reversed(made))


def _compiled(piece: Any, gives: int) -> Callable[..., Any]:
    body = jax_extend_core.jaxpr_as_fun(jax_extend_core.ClosedJaxpr(piece, ()))

    def run(needed: list[Any], summed: list[Any]) -> tuple[list[Any], list[Any]]:
        results = body(*needed, *(total[0] for total in summed))
        return results[:gives], [jnp.asarray(operand)[None] for operand in results[gives:]]

    return jax.jit(run)


def _look(var: Any) -> tuple[Any, str]:
    return tuple(var.aval.shape), str(var.aval.dtype)


def _is_sum(equation: Any) -> bool:
    params = equation.params
    return (
        equation.primitive.name == "psum"
        and tuple(params["axes"]) == (AXIS,)
        and params["axis_index_groups"] is None
    )


def _meets(equation: Any) -> bool:
    """Tell whether an equation, or one inside of it, speaks to the other replicas or asks who it is."""
    return any(speaks(step) or step.primitive.name == "axis_index" for step in steps(equation))
