"""A function while it is traced: the variables' values in it, and what makes the trace impossible."""

# JAX leaves parts of its own types unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Iterable
from typing import Any, final
from weakref import WeakSet

from evenfeed.core.callsite import Origin, where_called
from evenfeed.core.errors import described
from evenfeed.core.jax_door import jax_extend_core
from evenfeed.replicas import contexts

# Every variable that is alive: a trace gets them all as inputs, and keeps those that it used.
live: "WeakSet[Any]" = WeakSet()


@final
class Unstaged(BaseException):
    """The function cannot be compiled; it must run as plain Python. No user's `except` catches it.

    Attributes:
        why: What kept it from being compiled.
        origin: The user's line where that was.
        expected: Nobody needs to be told.
    """

    def __init__(self, why: str, *, expected: bool = False) -> None:
        super().__init__(why)
        self.why = why
        self.origin: Origin | None = where_called()
        self.expected = expected


@final
class Staging:
    """One level of a trace.

    Attributes:
        values: What each variable holds at this point of the function: across replicas the copies of
            all, in a replica's function its own.
        written: The variables that were assigned, in order.
        within: The replicas, where this is the function of one of them.
        apart: The parts differ in shape from replica to replica: the trace is run step by step.
        over: The replicas that something in the function runs over.
    """

    def __init__(self, values: dict[Any, Any], within: Any = None, *, apart: bool = False) -> None:
        self.values = values
        self.written: dict[Any, None] = {}
        self.within = within
        self.over: Any = None
        self.apart = apart
        self._rest = jax_extend_core.get_opaque_trace_state()

    def read(self, variable: Any) -> Any:
        """Return what a variable holds now."""
        if variable not in self.values:
            raise Unstaged("a variable was created", expected=True)
        return self.values[variable]

    def write(self, variable: Any, value: Any) -> None:
        """Let a variable hold a value from here on."""
        self.read(variable)
        check_place(self._rest, variable.name)
        self.values[variable] = value
        self.written[variable] = None


def check_place(rest: object, name: str) -> None:
    """Refuse to assign inside a transformation, where the value is not there yet.

    Raises:
        ValueError: The code that runs is inside `scan`, `cond`, `vmap`, `grad` or `jit`.
    """
    if jax_extend_core.get_opaque_trace_state() != rest:
        raise ValueError(
            described(
                f"The variable {name!r} is assigned inside a function that JAX transforms (scan, cond, "
                "vmap, grad or jit); the value would leave it unfinished.",
                fix="return the value from that function, and assign it outside.",
            )
        )


def alive() -> list[Any]:
    """Return the variables there are, the oldest first."""
    return sorted(live, key=lambda variable: variable.number)


def is_staged() -> bool:
    """Tell whether a function is being traced."""
    return contexts.staging() is not None


def used(jaxpr: Any, candidates: Iterable[Any]) -> list[int]:
    """Return which of the inputs a trace made use of."""
    seen = {var for equation in jaxpr.eqns for var in equation.invars if not hasattr(var, "val")}
    seen.update(var for var in jaxpr.outvars if not hasattr(var, "val"))
    return [index for index, var in enumerate(candidates) if var in seen]
