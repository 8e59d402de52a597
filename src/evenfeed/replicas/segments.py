"""Cuts the trace of one replica's function at its collectives.

Replicas whose parts have other shapes cannot be one program. Each then runs pieces of its own, compiled
for its shapes; between the pieces, one program over all devices does what they do together.
"""

# JAX leaves parts of its own types unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, final

from evenfeed.core.jax_door import jax, jax_extend_core
from evenfeed.replicas.mesh import AXIS
from evenfeed.replicas.staging import Unstaged


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
        outputs: The names of its results, or constants.
    """

    segments: tuple[Segment, ...]
    collectives: tuple[tuple[Any, ...], ...]
    inputs: tuple[Any, ...]
    outputs: tuple[Any, ...]


def cut(closed: Any, index: Any) -> Cut:
    """Cut a trace at its sums over the replicas.

    Args:
        closed: The trace; its first input is the number of the replica.
        index: That input.

    Raises:
        Unstaged: It meets the other replicas inside of a loop or a branch, or in another way.
    """
    jaxpr = closed.jaxpr
    groups: list[list[Any]] = [[]]
    sums: list[Any] = []
    same: dict[Any, Any] = {}
    for equation in jaxpr.eqns:
        name = equation.primitive.name
        if name == "axis_index":
            same[equation.outvars[0]] = index
        elif name == "psum" and tuple(equation.params["axes"]) == (AXIS,):
            sums.append(equation)
            groups.append([])
        elif _meets(equation):
            raise Unstaged(
                "the replicas meet inside of a loop, a branch or a function", expected=True
            )
        else:
            groups[-1].append(equation)
    outputs = tuple(same.get(var, var) if _is_name(var) else var for var in jaxpr.outvars)
    segments = _segments(groups, sums, outputs, same)
    collectives = tuple(tuple(_look(var) for var in equation.invars) for equation in sums)
    return Cut(segments, collectives, (*jaxpr.constvars, *jaxpr.invars), outputs)


def _segments(
    groups: Sequence[Sequence[Any]],
    sums: Sequence[Any],
    outputs: Sequence[Any],
    same: dict[Any, Any],
) -> tuple[Segment, ...]:
    later: set[Any] = {var for var in outputs if _is_name(var)}
    made: list[Segment] = []
    for place in reversed(range(len(groups))):
        before = tuple(sums[place - 1].outvars) if place else ()
        operands = tuple(sums[place].invars) if place < len(sums) else ()
        operands = tuple(same.get(var, var) if _is_name(var) else var for var in operands)
        equations = groups[place]
        produced = {var for equation in equations for var in equation.outvars} | set(before)
        gives = tuple(var for var in produced if var in later)
        reads = [v for e in equations for v in e.invars if _is_name(v)]
        reads += [v for v in operands if _is_name(v)]
        needs = tuple(
            dict.fromkeys(same.get(v, v) for v in reads if same.get(v, v) not in produced)
        )
        made.append(
            Segment(_compiled(equations, needs, before, gives, operands, same), needs, gives)
        )
        later = (later - produced) | set(needs)
    return tuple(reversed(made))


def _compiled(  # noqa: PLR0913, PLR0917 - the parts of one piece
    equations: Sequence[Any],
    needs: Sequence[Any],
    before: Sequence[Any],
    gives: Sequence[Any],
    operands: Sequence[Any],
    same: dict[Any, Any],
) -> Callable[..., Any]:
    def piece(needed: list[Any], summed: list[Any]) -> tuple[list[Any], list[Any]]:
        held: dict[Any, Any] = dict(zip(needs, needed, strict=True))
        held.update((var, value[0]) for var, value in zip(before, summed, strict=True))

        def value_of(atom: Any) -> Any:
            return held[same.get(atom, atom)] if _is_name(atom) else atom.val

        for equation in equations:
            _evaluate(equation, value_of, held)
        return [held[var] for var in gives], [value_of(var)[None] for var in operands]

    return jax.jit(piece)


def _evaluate(equation: Any, value_of: Callable[[Any], Any], held: dict[Any, Any]) -> None:
    """Compute one equation, by a trace that holds it alone."""
    one = jax_extend_core.Jaxpr(
        constvars=(),
        invars=[var for var in equation.invars if _is_name(var)],
        outvars=equation.outvars,
        eqns=[equation],
        effects=equation.effects,
    )
    body = jax_extend_core.jaxpr_as_fun(jax_extend_core.ClosedJaxpr(one, ()))
    results = body(*(value_of(var) for var in one.invars))
    held.update(zip(equation.outvars, results, strict=True))


def _is_name(atom: Any) -> bool:
    return not hasattr(atom, "val")


def _look(var: Any) -> tuple[Any, str]:
    return tuple(var.aval.shape), str(var.aval.dtype)


def _meets(equation: Any) -> bool:
    """Tell whether an equation, or one inside of it, speaks to the other replicas."""
    return f"'{AXIS}'" in str(equation.params) or _names_axis(equation)


def _names_axis(equation: Any) -> bool:
    return any(AXIS in str(effect) for effect in equation.effects)
