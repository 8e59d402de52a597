"""Results that all replicas compute in the same way, although their traces differ.

Replicas whose parts differ in shape have traces of their own. What they compute from sums over all replicas, and
from what all of them are given alike, is still one value: parameters after an optimizer's step, above all. One
program computes it on every device, so that the copies have the same bits and stay one replicated array.
"""

# JAX leaves parts of its own types unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast, final

import numpy as np

from evenfeed.core.lazy_jax import jax, jax_extend_core, jnp
from evenfeed.replicas.run.varying import differs_by_itself, is_name
from evenfeed.tensors.placement import is_traced

# Constants that are compared by their values; larger ones by identity.
_MOST_BYTES: Final = 1 << 16

# Calls of a function that has its own rule for gradients: by the time of a cut, that has been made use of.
_WITH_RULES: Final = ("custom_jvp_call", "custom_vjp_call")

_Numbers: TypeAlias = dict[Any, int]


@final
@dataclass(frozen=True, slots=True)
class Trace:
    """A replica's function, to compare with those of the others.

    Attributes:
        closed: The trace.
        same: Which of its inputs are the same for all replicas.
        sums: Its sums over the replicas, and which of all sums each is.
    """

    closed: Any
    same: frozenset[int]
    sums: dict[Any, tuple[int, int]]

    @property
    def sources(self) -> list[Any]:
        """The names of what all replicas have alike, without computing anything."""
        jaxpr = self.closed.jaxpr
        return [*jaxpr.constvars, *(jaxpr.invars[index] for index in sorted(self.same)), *self.sums]


@final
@dataclass(frozen=True, slots=True)
class Common:
    """What all replicas compute in the same way.

    Attributes:
        places: Which of the results.
        run: Compiled: takes what `needs` names, and returns these results.
        needs: For each trace, the names of what the program takes.
    """

    places: tuple[int, ...]
    run: Callable[..., list[Any]]
    needs: tuple[tuple[Any, ...], ...]


def common_results(traces: Sequence[Trace], asked: Sequence[int]) -> Common:
    """Find the results that are computed in the same way in all traces.

    Args:
        traces: One for each kind of replica.
        asked: The places of the results to look at.
    """
    forms = _Forms()
    rows = [forms.of_trace(trace) for trace in traces]
    outputs = [
        [forms.of_atom(trace.closed.jaxpr.outvars[place], numbers) for place in asked]
        for trace, numbers in zip(traces, rows, strict=True)
    ]
    columns = zip(asked, zip(*outputs, strict=True), strict=True)
    places = tuple(p for p, c in columns if c[0] is not None and len(set(c)) == 1)
    piece = _slice(traces[0], places)
    wanted = [rows[0][name] for name in piece.invars]
    needs = []
    for trace, numbers in zip(traces, rows, strict=True):
        named = {numbers[source]: source for source in trace.sources}
        needs.append(tuple(named[number] for number in wanted))
    run = jax.jit(jax_extend_core.jaxpr_as_fun(jax_extend_core.ClosedJaxpr(piece, ())))
    return Common(places, run, tuple(needs))


def _slice(trace: Trace, places: Sequence[int]) -> Any:
    """Return the part of a trace that computes some of its results."""
    jaxpr = trace.closed.jaxpr
    outputs = [jaxpr.outvars[place] for place in places]
    needed = {out for out in outputs if is_name(out)}
    equations: list[Any] = []
    for equation in reversed(jaxpr.eqns):
        if needed.isdisjoint(equation.outvars) or equation.outvars[0] in trace.sums:
            continue
        equations.append(equation)
        needed.update(filter(is_name, equation.invars))
    return jax_extend_core.Jaxpr(
        constvars=(),
        invars=[source for source in trace.sources if source in needed],
        outvars=outputs,
        eqns=equations[::-1],
        effects=frozenset(),
        debug_info=jaxpr.debug_info,
    )


@final
class _Forms:
    """Numbers the ways in which values are computed: what has one number is one value."""

    def __init__(self) -> None:
        self._known: dict[Any, int] = {}
        self._jaxprs: dict[int, int] = {}
        self._kept: list[Any] = []  # what is known by its id must live on

    def _number(self, form: Any) -> int:
        return self._known.setdefault(form, len(self._known))

    def of_trace(self, trace: Trace) -> _Numbers:
        """Return the numbers of what all replicas have alike, or compute of it."""
        jaxpr = trace.closed.jaxpr
        numbers = self._constants(jaxpr.constvars, trace.closed.consts)
        numbers.update((jaxpr.invars[i], self._number(("input", i))) for i in trace.same)
        for equation in jaxpr.eqns:
            if equation.outvars[0] in trace.sums:
                named = ((var, self._number(("sum", trace.sums[var]))) for var in equation.outvars)
                numbers.update(named)
            elif not equation.effects and not differs_by_itself(equation):
                self._add(equation, numbers)
        return numbers

    def of_atom(self, atom: Any, numbers: _Numbers) -> int | None:
        """Return the number of an input or output of an equation; None where replicas may differ in it."""
        return numbers.get(atom) if is_name(atom) else self._number(self._constant(atom.val))

    def _constants(self, names: Sequence[Any], values: Sequence[Any]) -> _Numbers:
        pairs = zip(names, values, strict=True)
        return {name: self._number(self._constant(value)) for name, value in pairs}

    def _add(self, equation: Any, numbers: _Numbers) -> None:
        given = tuple(self.of_atom(atom, numbers) for atom in equation.invars)
        if None in given:
            return
        form = equation.primitive, self._settings(equation), given
        named = ((var, self._number((form, p))) for p, var in enumerate(equation.outvars))
        numbers.update(named)

    def _settings(self, equation: Any) -> Any:
        params = sorted(equation.params.items())
        if equation.primitive.name.startswith(_WITH_RULES):
            params = [pair for pair in params if _is_jaxpr(pair[1])]
        return tuple((name, self._setting(value)) for name, value in params)

    def _setting(self, value: Any) -> Any:
        if _is_jaxpr(value):
            return self._of_jaxpr(value)
        if isinstance(value, (list, tuple)):
            return tuple(map(self._setting, cast("Sequence[Any]", value)))
        try:
            hash(value)
        except TypeError:
            return self._constant(value)
        return value

    def _of_jaxpr(self, jaxpr: Any) -> int:
        """Return the number of a function inside of an equation."""
        if id(jaxpr) not in self._jaxprs:
            self._kept.append(jaxpr)
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
        if not is_traced(value) and isinstance(value, (np.ndarray, np.generic, jax.Array)):
            if jnp.issubdtype(value.dtype, jax.dtypes.prng_key):
                return self._itself(value)
            if value.nbytes <= _MOST_BYTES:
                array = np.asarray(value)
                return "constant", str(array.dtype), array.shape, array.tobytes()
        if isinstance(value, (bool, int, float, complex)):
            return "constant", type(value), repr(value)
        return self._itself(value)

    def _itself(self, value: Any) -> Any:
        self._kept.append(value)
        return "object", id(value)


def _is_jaxpr(value: Any) -> bool:
    return isinstance(value, (jax_extend_core.ClosedJaxpr, jax_extend_core.Jaxpr))
