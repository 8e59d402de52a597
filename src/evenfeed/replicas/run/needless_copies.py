"""Drops the copies of replica 0's values where all replicas have computed the same.

A variable with ONLY_FIRST_REPLICA takes the value of replica 0, which is an all-reduce. After an all-reduce of the
gradients all replicas have the same value anyway: then a second one would only cost its time.
"""

from collections.abc import Sequence
from typing import Any

from evenfeed.replicas.collectives.from_first import NAME
from evenfeed.replicas.run.varying import is_variable, varying_values


def without_needless_copies(closed: Any, axes: Sequence[str], own: frozenset[int]) -> Any:
    """Return the function of one replica without copies of values that are the same on all replicas.

    Args:
        closed: The function as a closed jaxpr.
        axes: The axes that replicas differ along.
        own: The indices of the inputs that differ between replicas.
    """
    jaxpr = closed.jaxpr
    if not any(map(_is_copy, jaxpr.eqns)):
        return closed
    differ = varying_values(jaxpr, axes, own)
    same: dict[Any, Any] = {}

    def instead(atom: Any) -> Any:
        return same.get(atom, atom) if is_variable(atom) else atom

    kept: list[Any] = []
    for equation in jaxpr.eqns:
        given = [instead(atom) for atom in equation.invars]
        if _is_copy(equation) and not (is_variable(given[0]) and given[0] in differ):
            same[equation.outvars[0]] = given[0]
        else:
            kept.append(equation.replace(invars=given))
    return closed.replace(jaxpr=jaxpr.replace(eqns=kept, outvars=list(map(instead, jaxpr.outvars))))


def _is_copy(equation: Any) -> bool:
    return equation.params.get("name") == NAME
