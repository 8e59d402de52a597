"""Differentiates recorded operations: performs them again, under `jax.vjp`.

The replay computes the values of the forward pass once more. In a compiled function, `one_forward_pass` puts them in the
place of the first ones, so that the program computes each value once.
"""

from collections.abc import Sequence
from functools import cache
from typing import Any, TypeAlias, final

from evenfeed.core.lazy_jax import jax, jax_extend_core
from evenfeed.replicas.tape.recording import Operation, Record

# Arrays by identity: equal arrays may have different derivatives.
_Ids: TypeAlias = set[int]


@final
class Recorded:
    """The part of a record that depends on some arrays.

    Args:
        record: The record.
        starts: Arrays, each with the index of the operation from which on it counts.
    """

    def __init__(self, record: Record, starts: Sequence[tuple[Any, int]]) -> None:
        self._depending: _Ids = set()
        self._operations: list[Operation] = []
        later = sorted(starts, key=lambda start: start[1], reverse=True)
        for index, operation in enumerate(record.operations):
            while later and later[-1][1] <= index:
                self._depending.add(id(later.pop()[0]))
            self._follow(operation)
        self._depending.update(id(array) for array, _ in later)

    def _follow(self, operation: Operation) -> None:
        given = [id(array) in self._depending for array in operation.inputs]
        reached = operation.reaches(given) if any(given) else ()
        found = [id(x) for x, own in zip(operation.outputs, reached, strict=False) if own]
        if found:
            self._depending.update(found)
            self._operations.append(operation)

    def __contains__(self, array: object) -> bool:
        return id(array) in self._depending

    def leading_to(self, targets: Sequence[Any]) -> list[Operation]:
        """Return the operations that lead to some of the arrays, in order."""
        wanted: _Ids = {id(target) for target in targets}
        found: list[Operation] = []
        for operation in reversed(self._operations):
            if any(id(output) in wanted for output in operation.outputs):
                found.append(operation)
                wanted.update(map(id, operation.inputs))
        return found[::-1]


@final
class Replay:
    """Operations that can be performed again, with derivatives for some of the arrays in them.

    Args:
        operations: The operations, in order.
        sources: The arrays to differentiate for. One may depend on another.
        targets: The arrays to differentiate.
    """

    def __init__(
        self, operations: Sequence[Operation], sources: Sequence[Any], targets: Sequence[Any]
    ) -> None:
        self._operations = operations
        self._sources = sources
        self._targets = targets

    def pullback(self) -> tuple[Any, list[tuple[Any, Any]]]:
        """Return a function from gradients of the targets to gradients of the sources, and the repeated arrays.

        The arrays are pairs: as recorded, and as computed once more.
        """
        probes = [jax.numpy.zeros_like(source) for source in self._sources]
        _, pull, repeated = jax.vjp(self._performed, probes, has_aux=True)
        recorded = [output for operation in self._operations for output in operation.outputs]

        def gradients(given: Sequence[Any]) -> Any:
            return pull(given)[0]

        return gradients, list(zip(recorded, repeated, strict=True))

    def _performed(self, probes: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        tapped = dict(zip(map(id, self._sources), probes, strict=True))
        held: dict[int, Any] = {id(x): _tap()(x, tapped[id(x)]) for x in self._sources}
        repeated: list[Any] = []
        for operation in self._operations:
            outputs = operation.on([held.get(id(array), array) for array in operation.inputs])
            passed_on = set(map(id, operation.inputs))  # JAX returns an unchanged input as it is
            for old, new in zip(operation.outputs, outputs, strict=True):
                if id(old) not in passed_on:
                    probe = tapped.get(id(old))
                    held[id(old)] = new if probe is None else _tap()(new, probe)
            repeated += outputs
        return [held.get(id(target), target) for target in self._targets], repeated


@cache
def _tap() -> Any:
    """Return a function of an array and a probe: the array, whose derivative for the probe is 1."""

    def value(array: Any, probe: Any) -> Any:
        del probe
        return array

    def derivative(primals: Any, tangents: Any) -> tuple[Any, Any]:
        return primals[0], tangents[0] + tangents[1]

    tap = jax.custom_jvp(value)
    tap.defjvp(derivative)
    return tap


def one_forward_pass(closed: Any, repeated: Sequence[tuple[Any, Any]]) -> Any:
    """Return a traced function that computes repeated values only once.

    Args:
        closed: The closed jaxpr of the function.
        repeated: Pairs of tracers with the same value: as recorded, and as computed by the replay.
    """
    if not repeated:
        return closed
    jaxpr = closed.jaxpr
    makers = {var: equation for equation in jaxpr.eqns for var in equation.outvars}
    newest = _newest(repeated, makers)

    def latest(atom: Any) -> Any:
        while isinstance(atom, jax_extend_core.Var) and atom in newest:
            atom = newest[atom]
        return atom

    dropped = {id(makers[var]) for var in newest}
    equations = [
        equation.replace(invars=[latest(atom) for atom in equation.invars])
        for equation in jaxpr.eqns
        if not (id(equation) in dropped and all(var in newest for var in equation.outvars))
    ]
    outputs = [latest(atom) for atom in jaxpr.outvars]
    ordered = _in_order(equations, outputs)
    if ordered is None:
        return closed
    effects = frozenset[Any]().union(*(equation.effects for equation in ordered))
    changed = jaxpr.replace(eqns=ordered, outvars=outputs, effects=effects)
    return jax_extend_core.ClosedJaxpr(changed, closed.consts)


def _newest(repeated: Sequence[tuple[Any, Any]], makers: dict[Any, Any]) -> dict[Any, Any]:
    """Return the variable that replaces each repeated one, which may be replaced in turn."""
    newest: dict[Any, Any] = {}
    for old, new in repeated:
        before, after = getattr(old, "val", None), getattr(new, "val", None)
        while before in newest:
            before = newest[before]
        if before is not after and before in makers and after in makers:
            newest[before] = after
    return newest


def _in_order(equations: Sequence[Any], outputs: Sequence[Any]) -> list[Any] | None:
    """Return the equations that are needed, each after those that it needs; None if there is no such order."""
    makers = {var: equation for equation in equations for var in equation.outvars}
    roots = [equation for equation in equations if equation.effects]
    roots += [makers[atom] for atom in outputs if _is_made(atom, makers)]
    done: set[int] = set()
    open_: set[int] = set()
    found: list[Any] = []
    stack = roots[::-1]
    while stack:
        equation = stack[-1]
        missing = [
            makers[atom]
            for atom in equation.invars
            if _is_made(atom, makers) and id(makers[atom]) not in done
        ]
        if id(equation) in done or not missing:
            stack.pop()
            if id(equation) not in done:
                done.add(id(equation))
                found.append(equation)
            continue
        if id(equation) in open_:
            return None
        open_.add(id(equation))
        stack += missing[::-1]
    return found


def _is_made(atom: Any, makers: dict[Any, Any]) -> bool:
    return isinstance(atom, jax_extend_core.Var) and atom in makers
