"""Thread-local state: the strategy and the replica that the code of a thread runs for."""

import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, final

from evenfeed.core.iteration import reading
from evenfeed.core.side_effects import watched_by
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.tape.reads import no_listeners

if TYPE_CHECKING:
    from evenfeed.replicas.function.function import Function
    from evenfeed.replicas.function.staging import Staging
    from evenfeed.replicas.replica_context import ReplicaContext


class ExtendedLike(Protocol):
    """The part of `Strategy.extended` that replicas use."""

    replicas: Replicas

    def variable_kind(self, plain: Any, asked: dict[str, Any]) -> type:
        """Return the class for a new variable in the strategy's scope."""
        ...


class StrategyLike(Protocol):
    """The part of a strategy that replicas use. The class is in `strategy/strategy.py`, a room further out."""

    is_default: ClassVar[bool]  # the strategy of programs that chose none

    @property
    def devices(self) -> tuple[str, ...]:
        """The full names of the replicas' devices, in replica order."""
        ...

    @property
    def extended(self) -> ExtendedLike:
        """Its additional API."""
        ...

    def run(self, fn: Callable[..., Any], args: Any = (), kwargs: Any = None) -> Any:
        """Call a function on each replica."""
        ...


@final
@dataclass(frozen=True, slots=True)
class Frame:
    """One level of `scope`, `run` or `merge_call`.

    Attributes:
        strategy: The strategy.
        replicas: Its replicas.
        context: The ReplicaContext of the running replica, or None in a cross-replica context.
        updating: The replica whose copy of a variable `extended.update` is updating.
    """

    strategy: StrategyLike
    replicas: Replicas
    context: "ReplicaContext | None" = None
    updating: int | None = None


class _Thread(threading.local):
    """The state of one thread: its frames, and the functions that it is tracing."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self.chosen: Frame | None = None
        self.stagings: list[Staging] = []
        self.driving: Function | None = None
        self.creators: list[Callable[..., Any]] = []
        self.agreed = False  # whether all replicas assign the same, so that nothing is aggregated


here = _Thread()


def frame() -> Frame | None:
    """Return the innermost frame, or None if no strategy is current."""
    return here.frames[-1] if here.frames else here.chosen


@contextmanager
def entered(level: Frame) -> Generator[None]:
    """Run a block in a frame."""
    here.frames.append(level)
    try:
        yield
    finally:
        here.frames.pop()


def staging() -> "Staging | None":
    """Return the function that is being traced, or None outside a trace."""
    return here.stagings[-1] if here.stagings else None


@contextmanager
def staged(what: "Staging") -> Generator[None]:
    """Run a block while a function is traced."""
    here.stagings.append(what)
    try:
        with (
            no_listeners(),
            watched_by(None),
        ):  # the trace itself records what the function reads and assigns
            reading.instead = reading.starting = what.refuse_elements
            yield
    finally:
        here.stagings.pop()


def refuse_in_trace(iterator: object) -> None:
    """End the trace of a function that reads from an iterator: it must run as plain Python."""
    if here.stagings:
        here.stagings[-1].refuse_elements(iterator)


def replica_context() -> "ReplicaContext | None":
    """Return the running replica's ReplicaContext; None across replicas or without a strategy."""
    level = frame()
    return None if level is None else level.context
