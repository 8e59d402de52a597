"""Which results of a replica's function differ from replica to replica.

What depends on no replica's own data, or only on what came out of a collective, is the same everywhere
and is kept as one replicated array: parameters that go through a step stay replicated without a copy.
"""

from collections.abc import Sequence
from typing import Any, Final, cast

_AGREEING: Final = frozenset({"psum", "psum_invariant", "all_gather", "all_gather_invariant"})
# Not a function of what goes in: each replica may get something else.
_OWN: Final = ("axis_index", "callback", "random_seed", "infeed")


def varying_outputs(jaxpr: Any, own: frozenset[int] | None = None) -> list[bool]:
    """Tell for each output whether it may differ.

    Args:
        jaxpr: The function of one replica. Its constants are the same for all replicas.
        own: Which inputs differ; by default all.
    """
    chosen = range(len(jaxpr.invars)) if own is None else own
    differ = {jaxpr.invars[index] for index in chosen}
    for equation in jaxpr.eqns:
        name = equation.primitive.name
        if name in _AGREEING:
            continue
        if _draws(equation) or any(var in differ for var in _variables(equation.invars)):
            differ.update(equation.outvars)
    return [not hasattr(var, "val") and var in differ for var in jaxpr.outvars]


def _variables(atoms: Any) -> list[Any]:
    return [atom for atom in atoms if not hasattr(atom, "val")]


def _draws(equation: Any) -> bool:
    if any(word in equation.primitive.name for word in _OWN):
        return True
    return any(_draws(inner) for jaxpr in _inner(equation) for inner in jaxpr.eqns)


def _inner(equation: Any) -> list[Any]:
    found: list[Any] = []
    for value in equation.params.values():
        several = isinstance(value, (list, tuple))
        for each in cast("Sequence[Any]", value if several else (value,)):
            jaxpr = getattr(each, "jaxpr", each)
            if getattr(jaxpr, "eqns", None) is not None:
                found.append(jaxpr)
    return found
