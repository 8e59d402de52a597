"""Finds which results of a replica's function differ from replica to replica.

Results that do not depend on a replica's own data, or only through a collective, are the same everywhere. They are
kept as one replicated array: parameters that go through a step stay replicated without a copy.

A collective in a branch or loop that only some replicas take would deadlock: on the CPU, XLA ends the process after
40 seconds. So it is an error here.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, cast, final

from evenfeed.core.errors import described

# Collectives whose results are the same on all replicas.
_SAME_ON_ALL: Final = frozenset(
    {"psum", "psum_invariant", "pmax", "pmin", "all_gather", "all_gather_invariant"}
)
# Primitives whose results may differ between replicas even if their inputs do not.
_REPLICA_DEPENDENT: Final = ("axis_index", "callback", "infeed")
# Parameters that hold the jaxpr of a primitive that calls it once, on its inputs.
_CALLS: Final = ("jaxpr", "call_jaxpr", "fun_jaxpr")


def varying_outputs(
    jaxpr: Any, axes: Sequence[str], own: frozenset[int] | None = None
) -> list[bool]:
    """Return, for each output, whether it may differ between replicas.

    Args:
        jaxpr: The function of one replica. Its constants are the same for all replicas.
        axes: The axes that replicas differ along.
        own: The indices of the inputs that differ; by default all.

    Raises:
        ValueError: A collective is in a branch or loop that not all replicas may take.
    """
    differ = varying_values(jaxpr, axes, own)
    return [is_variable(atom) and atom in differ for atom in jaxpr.outvars]


def varying_values(
    jaxpr: Any, axes: Sequence[str], own: frozenset[int] | None = None
) -> "set[Any]":
    """Return the variables of a jaxpr that may differ between replicas: see `varying_outputs`."""
    inputs = [own is None or index in own for index in range(len(jaxpr.invars))]
    return _Analysis(axes).values(jaxpr, inputs)


@final
class _Analysis:
    """Follows which values differ between replicas, into loops, branches and calls."""

    def __init__(self, axes: Sequence[str]) -> None:
        self._axes = axes

    def outputs(self, jaxpr: Any, inputs: Sequence[bool]) -> list[bool]:
        """Return, for each output, whether it may differ, given the same for the inputs."""
        differ = self.values(jaxpr, inputs)
        return [is_variable(atom) and atom in differ for atom in jaxpr.outvars]

    def values(self, jaxpr: Any, inputs: Sequence[bool]) -> "set[Any]":
        """Return the variables that may differ, given whether the inputs do."""
        differ = {var for var, own in zip(jaxpr.invars, inputs, strict=True) if own}
        for equation in jaxpr.eqns:
            given = [is_variable(atom) and atom in differ for atom in equation.invars]
            results = self._results(equation, given)
            differ.update(var for var, own in zip(equation.outvars, results, strict=True) if own)
        return differ

    def _results(self, equation: Any, given: Sequence[bool]) -> Sequence[bool]:
        name, params = equation.primitive.name, equation.params
        if gives_all_the_same(equation, self._axes):
            return [False] * len(equation.outvars)
        if name == "cond":
            return self._branches(equation, given)
        if name == "while":
            return self._while(equation, given)
        if name == "scan":
            return self._scan(params, given)
        inner = next((params[key] for key in _CALLS if key in params), None)
        if inner is not None and len(_inner_jaxpr(inner).invars) == len(given):
            return self.outputs(_inner_jaxpr(inner), given)
        return [any(given) or depends_on_replica(equation)] * len(equation.outvars)

    def _branches(self, equation: Any, given: Sequence[bool]) -> Sequence[bool]:
        if given[0]:
            self._check_no_collective(equation, "branch (cond)")
            return [True] * len(equation.outvars)
        rows = [
            self.outputs(_inner_jaxpr(branch), given[1:]) for branch in equation.params["branches"]
        ]
        return [any(column) for column in zip(*rows, strict=True)]

    def _while(self, equation: Any, given: Sequence[bool]) -> Sequence[bool]:
        params = equation.params
        first, second = params["cond_nconsts"], params["body_nconsts"]
        of_cond, of_body = list(given[:first]), list(given[first : first + second])
        carry = _fixed_point(
            lambda held: self.outputs(_inner_jaxpr(params["body_jaxpr"]), of_body + held),
            list(given[first + second :]),
        )
        if self.outputs(_inner_jaxpr(params["cond_jaxpr"]), of_cond + carry)[0]:
            self._check_no_collective(equation, "loop (while_loop)")
            return [True] * len(carry)
        return carry

    def _scan(self, params: Any, given: Sequence[bool]) -> Sequence[bool]:
        consts, carried = params["num_consts"], params["num_carry"]
        body = _inner_jaxpr(params["jaxpr"])
        before, rows = list(given[:consts]), list(given[consts + carried :])
        carry = _fixed_point(
            lambda held: self.outputs(body, [*before, *held, *rows])[:carried],
            list(given[consts : consts + carried]),
        )
        return self.outputs(body, [*before, *carry, *rows])

    def _check_no_collective(self, equation: Any, where: str) -> None:
        for inner in equations_in(equation):
            if communicates(inner, self._axes):
                raise ValueError(
                    described(
                        f"A collective ({inner.primitive.name}) is in a {where} that not all replicas may take: "
                        "those that do would wait for the others forever.",
                        fix="call it outside, or let the condition depend only on values that are the same on all "
                        "replicas, such as results of all_reduce.",
                    )
                )


def _fixed_point(inner: Callable[[list[bool]], Sequence[bool]], carry: list[bool]) -> list[bool]:
    """Repeat a loop body until no further value differs."""
    while True:
        more = [old or new for old, new in zip(carry, inner(carry), strict=True)]
        if more == carry:
            return carry
        carry = more


# --- predicates on equations ----------------------------------------------------------------


def is_variable(atom: Any) -> bool:
    """Return True if an input or output of an equation is a variable, not a literal."""
    return not hasattr(atom, "val")


def depends_on_replica(equation: Any) -> bool:
    """Return True if an equation may give each replica a different result for the same inputs."""
    return any(
        word in inner.primitive.name
        for inner in equations_in(equation)
        for word in _REPLICA_DEPENDENT
    )


def communicates(equation: Any, axes: Sequence[str]) -> bool:
    """Return True if an equation itself, not one inside it, exchanges values along the axes of the replicas."""
    return equation.primitive.name != "axis_index" and not _axes_of(equation).isdisjoint(axes)


def _axes_of(equation: Any) -> frozenset[Any]:
    """Return the axes that an equation names. Positions of array axes may be among them."""
    params = equation.params
    named = params.get("axes", params.get("axis_name", ()))
    return frozenset(cast("Sequence[Any]", named if isinstance(named, (tuple, list)) else (named,)))


def gives_all_the_same(equation: Any, axes: Sequence[str]) -> bool:
    """Return True if an equation is a collective of all replicas, not of groups, that gives all the same results."""
    groups = equation.params.get("axis_index_groups")
    is_known = equation.primitive.name in _SAME_ON_ALL and groups is None
    return is_known and _axes_of(equation).issuperset(axes)


def equations_in(equation: Any) -> Iterator[Any]:
    """Yield an equation and all equations inside it."""
    yield equation
    for value in equation.params.values():
        several = isinstance(value, (list, tuple))
        for each in cast("Sequence[Any]", value if several else (value,)):
            jaxpr = _inner_jaxpr(each)
            for inner in getattr(jaxpr, "eqns", None) or ():
                yield from equations_in(inner)


def _inner_jaxpr(jaxpr: Any) -> Any:
    return getattr(jaxpr, "jaxpr", jaxpr)
