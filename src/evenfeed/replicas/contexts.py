"""Which strategy, and which of its replicas, the code of a thread runs for."""

import threading
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, final

from evenfeed.core.iteration import reading
from evenfeed.core.side_effects import watched_by
from evenfeed.replicas.mesh import Replicas


@final
@dataclass(frozen=True, slots=True)
class Frame:
    """One level of `scope`, `run` or `merge_call`.

    Attributes:
        strategy: The strategy.
        replicas: Its replicas.
        context: The ReplicaContext of the replica that runs; None across replicas.
        updating: The replica whose copy of a variable `extended.update` works on.
    """

    strategy: Any
    replicas: Replicas
    context: Any = None
    updating: int | None = None


class _Thread(threading.local):
    """What one thread is in: the frames, and the functions that are being traced."""

    def __init__(self) -> None:
        self.frames: list[Frame] = []
        self.chosen: Any = None
        self.stagings: list[Any] = []
        self.driving: Any = None
        self.creators: list[Any] = []


here = _Thread()


def frame() -> Frame | None:
    """Return the innermost level; None where no strategy is current."""
    return here.frames[-1] if here.frames else here.chosen


@contextmanager
def entered(level: Frame) -> Generator[None]:
    """Run a block at a level."""
    here.frames.append(level)
    try:
        yield
    finally:
        here.frames.pop()


def staging() -> Any:
    """Return the function that is being traced; None where values are there."""
    return here.stagings[-1] if here.stagings else None


@contextmanager
def staged(what: Any) -> Generator[None]:
    """Trace a block."""
    here.stagings.append(what)
    try:
        with watched_by(None):  # a trace knows itself what the function reads and assigns
            reading.instead = what.refuse_elements
            yield
    finally:
        here.stagings.pop()


def replica_context() -> Any:
    """Return the ReplicaContext of the replica that runs; None across replicas or without a strategy."""
    level = frame()
    return None if level is None else level.context
