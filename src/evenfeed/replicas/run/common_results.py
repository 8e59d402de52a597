"""Finds results that all replicas compute in the same way, although their traces differ.

Replicas whose parts differ in shape have their own traces. But what they compute from results of collectives and from
inputs that all share is one value: above all, the parameters after an optimizer step. One program computes it on every
device, so the copies are bitwise equal and stay one replicated array.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast, final

import numpy as np

from evenfeed.core.conversion import Array
from evenfeed.core.lazy_jax import jax, jax_extend_core, jnp
from evenfeed.replicas.function.outputs import is_tensor_leaf
from evenfeed.replicas.run.varying import depends_on_replica, is_variable
from evenfeed.tensors.device_arrays import is_traced

# Constants up to this size are compared by value, larger ones by identity.
_MAX_BYTES: Final = 1 << 16

# Calls of functions with a custom gradient. When a trace is cut, differentiation is done, so the rules are ignored.
_CUSTOM_GRADIENTS: Final = ("custom_jvp_call", "custom_vjp_call")

_Numbers: TypeAlias = dict[Any, int]


@final
@dataclass(frozen=True, slots=True)
class CommonTrace:
    """A replica's traced function, to compare with those of other replicas.

    Attributes:
        closed: The closed jaxpr.
        same: The indices of inputs that are the same for all replicas.
        received: The variables that are results of collectives, with the position of each.
    """

    closed: Any
    same: frozenset[int]
    received: dict[Any, tuple[int, int]]

    @property
    def sources(self) -> list[Any]:
        """The variables that are the same on all replicas to begin with."""
        jaxpr = self.closed.jaxpr
        return [
            *jaxpr.constvars,
            *(jaxpr.invars[index] for index in sorted(self.same)),
            *self.received,
        ]


@final
@dataclass(frozen=True, slots=True)
class Common:
    """The results that all replicas compute in the same way.

    Attributes:
        places: The indices of these results.
        run: The compiled program: takes the values of `needs`, returns these results.
        needs: For each trace, the variables that the program takes.
    """

    places: tuple[int, ...]
    run: Callable[..., list[Any]]
    needs: tuple[tuple[Any, ...], ...]


def common_results(traces: Sequence[CommonTrace], candidates: Sequence[int]) -> Common:
    """Find the results that all traces compute in the same way.

    Args:
        traces: One for each kind of replica.
        candidates: The indices of the results to compare.
    """
    numbering = _ValueNumbering()
    rows = [numbering.of_trace(trace) for trace in traces]
    outputs = [
        [numbering.of_atom(trace.closed.jaxpr.outvars[place], numbers) for place in candidates]
        for trace, numbers in zip(traces, rows, strict=True)
    ]
    columns = zip(candidates, zip(*outputs, strict=True), strict=True)
    places = tuple(p for p, c in columns if c[0] is not None and len(set(c)) == 1)
    piece = _slice(traces[0], places)
    wanted = [rows[0][name] for name in piece.invars]
    needs: list[tuple[Any, ...]] = []
    for trace, numbers in zip(traces, rows, strict=True):
        named = {numbers[source]: source for source in trace.sources}
        needs.append(tuple(named[number] for number in wanted))
    run = jax.jit(jax_extend_core.jaxpr_as_fun(jax_extend_core.ClosedJaxpr(piece, ())))
    return Common(places, run, tuple(needs))


def _slice(trace: CommonTrace, places: Sequence[int]) -> Any:
    """Return the part of a jaxpr that computes some of its results."""
    jaxpr = trace.closed.jaxpr
    outputs = [jaxpr.outvars[place] for place in places]
    needed = {out for out in outputs if is_variable(out)}
    equations: list[Any] = []
    for equation in reversed(jaxpr.eqns):
        if needed.isdisjoint(equation.outvars) or equation.outvars[0] in trace.received:
            continue
        equations.append(equation)
        needed.update(filter(is_variable, equation.invars))
    return jax_extend_core.Jaxpr(
        constvars=(),
        invars=[source for source in trace.sources if source in needed],
        outvars=outputs,
        eqns=equations[::-1],
        effects=frozenset(),
        debug_info=jaxpr.debug_info,
    )


@final
class _ValueNumbering:
    """Value numbering: equal computations get equal numbers."""

    def __init__(self) -> None:
        self._known: dict[Any, int] = {}
        self._jaxprs: dict[int, int] = {}
        self._kept_alive: list[Any] = []  # objects known by id must stay alive

    def _number(self, form: Any) -> int:
        return self._known.setdefault(form, len(self._known))

    def of_trace(self, trace: CommonTrace) -> _Numbers:
        """Return the numbers of all variables that are the same on all replicas."""
        jaxpr = trace.closed.jaxpr
        numbers = self._constants(jaxpr.constvars, trace.closed.consts)
        numbers.update((jaxpr.invars[i], self._number(("input", i))) for i in trace.same)
        for equation in jaxpr.eqns:
            if equation.outvars[0] in trace.received:
                named = (
                    (var, self._number(("received", trace.received[var])))
                    for var in equation.outvars
                )
                numbers.update(named)
            elif not equation.effects and not depends_on_replica(equation):
                self._add(equation, numbers)
        return numbers

    def of_atom(self, atom: Any, numbers: _Numbers) -> int | None:
        """Return the number of an input or output; None if it may differ between replicas."""
        return numbers.get(atom) if is_variable(atom) else self._number(self._constant(atom.val))

    def _constants(self, names: Sequence[Any], values: Sequence[Any]) -> _Numbers:
        pairs = zip(names, values, strict=True)
        return {name: self._number(self._constant(value)) for name, value in pairs}

    def _add(self, equation: Any, numbers: _Numbers) -> None:
        given = tuple(self.of_atom(atom, numbers) for atom in equation.invars)
        if None in given:
            return
        form = equation.primitive, self._params_key(equation), given
        named = ((var, self._number((form, p))) for p, var in enumerate(equation.outvars))
        numbers.update(named)

    def _params_key(self, equation: Any) -> Any:
        params = sorted(equation.params.items())
        if equation.primitive.name.startswith(_CUSTOM_GRADIENTS):
            params = [pair for pair in params if _is_jaxpr(pair[1])]
        return tuple((name, self._param_key(value)) for name, value in params)

    def _param_key(self, value: Any) -> Any:
        if _is_jaxpr(value):
            return self._of_jaxpr(value)
        if isinstance(value, (list, tuple)):
            return tuple(map(self._param_key, cast("Sequence[Any]", value)))
        try:
            hash(value)
        except TypeError:
            return self._constant(value)
        return value

    def _of_jaxpr(self, jaxpr: Any) -> int:
        """Return the number of a jaxpr inside an equation."""
        if id(jaxpr) not in self._jaxprs:
            self._kept_alive.append(jaxpr)
            inner = getattr(jaxpr, "jaxpr", jaxpr)
            numbers = self._constants(inner.constvars, getattr(jaxpr, "consts", ()))
            names = enumerate(inner.invars)
            numbers.update((name, self._number(("given", p, str(name.aval)))) for p, name in names)
            for equation in inner.eqns:
                self._add(equation, numbers)
            outputs = tuple(self.of_atom(out, numbers) for out in inner.outvars)
            self._jaxprs[id(jaxpr)] = self._number(("function", outputs))
        return self._jaxprs[id(jaxpr)]

    def _constant(self, value: Any) -> Any:
        if not is_traced(value) and is_tensor_leaf(value):
            if jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
                return self._by_identity(value)
            if value.nbytes <= _MAX_BYTES:
                array: Array = np.asarray(value)
                return "constant", str(array.dtype), array.shape, array.tobytes()
        if isinstance(value, (bool, int, float, complex)):
            return "constant", type(value), repr(value)
        return self._by_identity(value)

    def _by_identity(self, value: Any) -> Any:
        self._kept_alive.append(value)
        return "object", id(value)


def _is_jaxpr(value: Any) -> bool:
    return isinstance(value, (jax_extend_core.ClosedJaxpr, jax_extend_core.Jaxpr))
