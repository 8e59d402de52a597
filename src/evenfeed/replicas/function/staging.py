"""A function while it is traced: the variables' values in it, and what makes the trace impossible."""

# JAX leaves parts of its own types unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Iterable
from typing import Any, final
from weakref import ref

from evenfeed.core.callsite import Origin, where_called
from evenfeed.core.errors import described
from evenfeed.core.lazy_jax import jax, jax_extend_core
from evenfeed.replicas import contexts


@final
class _Live:
    """Every variable that is alive: a trace gets them all as inputs, and keeps those that it used.

    Not a WeakSet: it must not be gone through while another thread adds to it.
    """

    def __init__(self) -> None:
        self._refs: dict[int, ref[Any]] = {}

    def add(self, variable: Any) -> None:
        """Know a variable as long as it lives."""
        number = variable.number
        self._refs[number] = ref(variable, lambda _: self._refs.pop(number, None))

    def list(self) -> "list[Any]":
        """Return the variables there are, the oldest first."""
        found = (self._refs.get(number, _nothing)() for number in sorted(self._refs))
        return [variable for variable in found if variable is not None]


def _nothing() -> None:
    return None


live = _Live()


class Unstaged(BaseException):
    """The function cannot be compiled; it must run as plain Python. No user's `except` catches it.

    Attributes:
        why: What kept it from being compiled.
        origin: The user's line where that was.
        expected: Nobody needs to be told.
        always: It is so for arguments of any kind.
    """

    def __init__(
        self,
        why: str,
        *,
        expected: bool = False,
        always: bool | None = None,
        origin: Origin | None = None,
    ) -> None:
        super().__init__(why)
        self.why = why
        self.origin = origin or where_called()
        self.expected = expected
        self.always = not expected if always is None else always


@final
class Creates(Unstaged):
    """The function creates a variable: the trace must know of it from the start."""


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
        device: That of the only replica, where a strategy has one.
        creates: The function runs to create its variables; what else it does is thrown away.
        carried: How many of its last results are the state of objects that its caller keeps.
    """

    def __init__(
        self,
        values: dict[Any, Any],
        within: Any = None,
        *,
        apart: bool = False,
        creates: bool = False,
    ) -> None:
        self.values = values
        self.written: dict[Any, None] = {}
        self.within = within
        self.over: Any = None
        self.device: Any = None
        self.apart = apart
        self.creates = creates
        self.carried = 0
        self._rest = jax_extend_core.get_opaque_trace_state()

    def read(self, variable: Any) -> Any:
        """Return what a variable holds now."""
        if variable not in self.values:
            if not contexts.here.stagings[0].creates:
                # Another thread made it after this trace began: a new trace will know it.
                raise Creates(f"the variable {variable.name!r} is new")
            self.values[variable] = self._begun(variable)
        return self.values[variable]

    def _begun(self, variable: Any) -> Any:
        with jax.ensure_compile_time_eval():
            held = variable.held
            own = getattr(variable, "replicas", None)
            return held[0] if own is not None and own is self.within else held

    def write(self, variable: Any, value: Any) -> None:
        """Let a variable hold a value from here on."""
        self.read(variable)
        check_place(self._rest, variable.name)
        self.values[variable] = value
        self.written[variable] = None

    @staticmethod
    def refuse_elements(iterator: Any) -> None:
        """Refuse to read from an iterator: its elements are not there while a function is traced."""
        del iterator
        raise Unstaged("it reads from an iterator", expected=True, always=True)


def about_to_create() -> None:
    """Stop a trace in which a variable is to be created, unless it runs for just that."""
    if contexts.here.stagings and not contexts.here.stagings[0].creates:
        raise Creates("it creates a variable")


def check_place(rest: object, name: str) -> None:
    """Refuse to assign inside a transformation, where the value is not there yet.

    Raises:
        ValueError: The code that runs is inside `scan`, `cond`, `vmap`, `grad` or `jit`.
    """
    if jax_extend_core.get_opaque_trace_state() != rest:
        raise ValueError(assigned_inside(name))


def assigned_inside(name: str) -> str:
    """Say that a variable cannot be assigned where JAX transforms the code."""
    return described(
        f"The variable {name!r} is assigned inside a function that JAX transforms (scan, cond, "
        "vmap, grad or jit); the value would leave it unfinished.",
        fix="return the value from that function, and assign it outside.",
    )


def used(jaxpr: Any, candidates: Iterable[Any]) -> list[int]:
    """Return which of the inputs a trace made use of."""
    seen = {var for equation in jaxpr.eqns for var in equation.invars if not hasattr(var, "val")}
    seen.update(var for var in jaxpr.outvars if not hasattr(var, "val"))
    return [index for index, var in enumerate(candidates) if var in seen]
