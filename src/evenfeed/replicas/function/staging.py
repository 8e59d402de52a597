"""`Staging`, the state of a function while it is traced, and `Unstaged`, which ends a trace that cannot be compiled."""

from collections.abc import Iterable
from typing import Any, final
from weakref import ref

from evenfeed.core.callsite import Origin, where_called
from evenfeed.core.errors import described
from evenfeed.core.lazy_jax import jax, jax_extend_core, jnp
from evenfeed.replicas import contexts
from evenfeed.replicas.context_mesh import apart_from_context_mesh
from evenfeed.replicas.tape.recording import beneath_tapes


@final
class _Live:
    """All live variables. A trace takes them all as inputs, and keeps those that it used.

    Not a WeakSet: another thread may add to it during an iteration.
    """

    def __init__(self) -> None:
        self._refs: dict[int, ref[Any]] = {}

    def add(self, variable: Any) -> None:
        """Register a variable for as long as it lives."""
        number = variable.number
        self._refs[number] = ref(variable, lambda _: self._refs.pop(number, None))

    def list(self) -> "list[Any]":
        """Return the live variables, oldest first."""
        found = (self._refs.get(number, _nothing)() for number in sorted(self._refs))
        return [variable for variable in found if variable is not None]

    def held(self) -> "list[tuple[Any, Any]]":
        """Return the live variables and their values.

        Each is read once: a Keras variable that nobody uses may be collected at any time.
        """
        with apart_from_context_mesh():
            found = [(variable, variable.held) for variable in self.list()]
        return [(variable, held) for variable, held in found if held is not None]


def _nothing() -> None:
    return None


live = _Live()


class Unstaged(BaseException):
    """The function cannot be compiled and must run as plain Python. A user's `except Exception` does not catch it.

    Attributes:
        why: What prevents compilation.
        origin: The line of user code where that is.
        expected: Whether no warning is needed.
        always: Whether it holds for arguments of any signature.
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

    def again(self) -> "Unstaged":
        """Return the same reason, to keep or to raise: without the frames of this one, which hold their arguments."""
        return Unstaged(self.why, expected=self.expected, always=self.always, origin=self.origin)


@final
class Creates(Unstaged):
    """The function creates a variable, which the trace must know from the start."""


@final
class InContextMesh(Unstaged):
    """The function runs replicas, but is traced inside `jax.set_mesh`. It must be traced again outside of it."""


@final
class Incomplete(Unstaged):
    """The trace met variables that are not among its inputs. Now they are known, and it must start again."""


@final
class Staging:
    """One level of a trace.

    Attributes:
        values: The current value of each variable: across replicas the copies of all replicas, in a replica's
            function its own copy.
        written: The variables that were assigned, in order.
        within: The replicas, if this is the function of one of them.
        uneven: Whether parts differ in shape between replicas. Then the trace is evaluated equation by equation.
        over: The replicas that something in the function runs on.
        device: The device of the only replica, if a strategy has just one.
        creates: Whether the function runs only to create its variables; its results are discarded.
        repeated: Pairs of tracers with the same value: as recorded by a tape, and as computed for its gradients.
        open_variables: The variables of unknown shape that it has read.
        is_incomplete: Whether it met a variable that is not among its inputs, and must be traced again.
        carried: How many of its last results are the state of objects that its caller keeps.
        started: The variables that it created with an initial value that depends on the function's arguments, and
            that value.
    """

    def __init__(
        self,
        values: dict[Any, Any],
        within: Any = None,
        *,
        uneven: bool = False,
        creates: bool = False,
    ) -> None:
        self.values = values
        self.written: dict[Any, None] = {}
        self.within = within
        self.over: Any = None
        self.device: Any = None
        self.uneven = uneven
        self.creates = creates
        self.carried = 0
        self.started: dict[Any, Any] = {}
        self.repeated: list[tuple[Any, Any]] = []
        self.open_variables: dict[Any, None] = {}
        self.is_incomplete = False
        self._trace_state = trace_state()

    def read(self, variable: Any) -> Any:
        """Return the current value of a variable."""
        if variable not in self.values:
            if not contexts.here.stagings[0].creates:
                # Another thread created it after this trace started: a new trace will know it.
                raise Creates(f"the variable {variable.name!r} is new")
            self.values[variable] = self._current_value(variable)
        if not variable.shape.is_fully_defined():
            for level in contexts.here.stagings:
                level.open_variables[variable] = None
        return self.values[variable]

    def _current_value(self, variable: Any) -> Any:
        with jax.ensure_compile_time_eval():
            held = variable.held
            own = getattr(variable, "replicas", None)
            current = held[0] if own is not None and own is self.within else held
        start = contexts.here.stagings[0].started.get(variable)
        return current if start is None else jnp.broadcast_to(start, current.shape)

    def results(self, result: Any) -> Any:
        """Return what the program returns: of a trace that creates variables, their initial values."""
        if not self.creates:
            return result
        self.written.clear()  # the next trace assigns again
        return tuple(self.started.values())

    def write(self, variable: Any, value: Any) -> None:
        """Set the value of a variable from here on."""
        self.read(variable)
        check_place(self._trace_state, variable.name)
        self.values[variable] = value
        self.written[variable] = None

    def is_at(self, place: object) -> bool:
        """Return True if a trace state is that in which the function was called."""
        return self._trace_state == place

    @staticmethod
    def refuse_elements(iterator: Any) -> None:
        """Raise for a read from an iterator: its elements are not available during a trace."""
        del iterator
        raise Unstaged("it reads from an iterator", expected=True, always=True)


def trace_state() -> object:
    """Return JAX's trace state. A tape that records does not change it: it only looks on."""
    with beneath_tapes():
        return jax_extend_core.get_opaque_trace_state()


def about_to_create() -> None:
    """Stop a trace that is about to create a variable, unless it runs for that purpose."""
    if contexts.here.stagings and not contexts.here.stagings[0].creates:
        raise Creates("it creates a variable")


def creates_at(place: object) -> bool:
    """Return True if the trace is at a given place, outside of JAX transformations, and runs to create variables."""
    stagings = contexts.here.stagings
    return bool(stagings) and stagings[0].creates and stagings[-1].is_at(place)


def check_place(rest: object, name: str) -> None:
    """Check that no JAX transformation is active, in which a variable must not be assigned.

    Raises:
        ValueError: The current code is inside `scan`, `cond`, `vmap`, `grad` or `jit`.
    """
    if trace_state() != rest:
        raise ValueError(assigned_inside(name))


def assigned_inside(name: str) -> str:
    """Return the error text for a variable that is assigned inside a JAX transformation."""
    return described(
        f"The variable {name!r} is assigned inside a function that JAX transforms (scan, cond, "
        "vmap, grad or jit); the value would leak as a tracer.",
        fix="return the value from that function, and assign it outside.",
    )


def used(jaxpr: Any, candidates: Iterable[Any]) -> list[int]:
    """Return the indices of the candidates that a jaxpr uses."""
    seen = {var for equation in jaxpr.eqns for var in equation.invars if not hasattr(var, "val")}
    seen.update(var for var in jaxpr.outvars if not hasattr(var, "val"))
    return [index for index, var in enumerate(candidates) if var in seen]
