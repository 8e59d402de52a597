"""Which results of a replica's function differ from replica to replica.

What depends on no replica's own data, or only on what came out of a collective, is the same everywhere
and is kept as one replicated array: parameters that go through a step stay replicated without a copy.

A collective in a branch or a loop that only some replicas take would wait for the others for ever: on the
CPU, XLA ends the process after 40 seconds. So that is refused here.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, cast

from evenfeed.core.errors import described
from evenfeed.replicas.mesh import AXIS

# Whatever goes in, all replicas get the same out of these.
_AGREEING: Final = frozenset(
    {"psum", "psum_invariant", "pmax", "pmin", "all_gather", "all_gather_invariant"}
)
# Not a function of what goes in: each replica may get something else.
_OWN: Final = ("axis_index", "callback", "infeed")
# Operations that call one function once, on what goes in.
_CALLS: Final = ("jaxpr", "call_jaxpr", "fun_jaxpr")


def varying_outputs(jaxpr: Any, own: frozenset[int] | None = None) -> list[bool]:
    """Tell for each output whether it may differ.

    Args:
        jaxpr: The function of one replica. Its constants are the same for all replicas.
        own: Which inputs differ; by default all.

    Raises:
        ValueError: A collective stands where not all replicas come to.
    """
    count = len(jaxpr.invars)
    return _outputs(jaxpr, [own is None or index in own for index in range(count)])


def _outputs(jaxpr: Any, inputs: Sequence[bool]) -> list[bool]:
    differ = {var for var, own in zip(jaxpr.invars, inputs, strict=True) if own}
    for equation in jaxpr.eqns:
        given = [is_name(atom) and atom in differ for atom in equation.invars]
        results = _results(equation, given)
        differ.update(var for var, own in zip(equation.outvars, results, strict=True) if own)
    return [is_name(atom) and atom in differ for atom in jaxpr.outvars]


def _results(equation: Any, given: Sequence[bool]) -> Sequence[bool]:
    name, params = equation.primitive.name, equation.params
    if name in _AGREEING and speaks(equation) and params.get("axis_index_groups") is None:
        return [False] * len(equation.outvars)
    if name == "cond":
        return _branches(equation, given)
    if name == "while":
        return _while(equation, given)
    if name == "scan":
        return _scan(params, given)
    inner = next((params[key] for key in _CALLS if key in params), None)
    if inner is not None and len(_opened(inner).invars) == len(given):
        return _outputs(_opened(inner), given)
    return [any(given) or differs_by_itself(equation)] * len(equation.outvars)


def _branches(equation: Any, given: Sequence[bool]) -> Sequence[bool]:
    if given[0]:
        _check_silent(equation, "branch (cond)")
        return [True] * len(equation.outvars)
    rows = [_outputs(_opened(branch), given[1:]) for branch in equation.params["branches"]]
    return [any(column) for column in zip(*rows, strict=True)]


def _while(equation: Any, given: Sequence[bool]) -> Sequence[bool]:
    params = equation.params
    first, second = params["cond_nconsts"], params["body_nconsts"]
    of_cond, of_body = list(given[:first]), list(given[first : first + second])
    carry = _settled(
        lambda held: _outputs(_opened(params["body_jaxpr"]), of_body + held),
        list(given[first + second :]),
    )
    if _outputs(_opened(params["cond_jaxpr"]), of_cond + carry)[0]:
        _check_silent(equation, "loop (while_loop)")
        return [True] * len(carry)
    return carry


def _scan(params: Any, given: Sequence[bool]) -> Sequence[bool]:
    consts, carried = params["num_consts"], params["num_carry"]
    body = _opened(params["jaxpr"])
    before, rows = list(given[:consts]), list(given[consts + carried :])
    carry = _settled(
        lambda held: _outputs(body, [*before, *held, *rows])[:carried],
        list(given[consts : consts + carried]),
    )
    return _outputs(body, [*before, *carry, *rows])


def _settled(step: Callable[[list[bool]], Sequence[bool]], carry: list[bool]) -> list[bool]:
    """Go round a loop until nothing new differs."""
    while True:
        more = [old or new for old, new in zip(carry, step(carry), strict=True)]
        if more == carry:
            return carry
        carry = more


def _check_silent(equation: Any, where: str) -> None:
    for step in steps(equation):
        if speaks(step):
            raise ValueError(
                described(
                    f"A collective ({step.primitive.name}) stands in a {where} that not all replicas need "
                    "take: those that do would wait for the others for ever.",
                    fix="call it outside, or let a value that is the same on all replicas, such as one "
                    "from all_reduce, choose.",
                )
            )


# --- what an equation is --------------------------------------------------------------------


def is_name(atom: Any) -> bool:
    """Tell whether an input or output stands for a value; else it is a constant."""
    return not hasattr(atom, "val")


def differs_by_itself(equation: Any) -> bool:
    """Return True if each replica may get something else of what is the same for all."""
    return any(word in step.primitive.name for step in steps(equation) for word in _OWN)


def speaks(equation: Any) -> bool:
    """Tell whether an equation itself, not one inside of it, exchanges values with other replicas."""
    params = equation.params
    axes = params.get("axes", params.get("axis_name", ()))
    named = axes == AXIS or (isinstance(axes, tuple) and AXIS in axes)
    return named and equation.primitive.name != "axis_index"


def steps(equation: Any) -> Iterator[Any]:
    """Yield an equation, and those inside of it."""
    yield equation
    for value in equation.params.values():
        several = isinstance(value, (list, tuple))
        for each in cast("Sequence[Any]", value if several else (value,)):
            jaxpr = _opened(each)
            for inner in getattr(jaxpr, "eqns", None) or ():
                yield from steps(inner)


def _opened(jaxpr: Any) -> Any:
    return getattr(jaxpr, "jaxpr", jaxpr)
