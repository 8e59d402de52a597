"""Which tapes are open in a thread, and how they learn which variables are read."""

import threading
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol, final

from evenfeed.core.errors import described
from evenfeed.core.lazy_jax import jax, jax_extend_core
from evenfeed.replicas.tape.recording import Record, is_differentiable
from evenfeed.tensors.device_arrays import is_traced, same_memory


class Listener(Protocol):
    """What hears of variables that are read: above all, a tape."""

    @property
    def record(self) -> Record | None:
        """What a tape has recorded."""
        ...

    def value_for(self, variable: Any) -> Any:
        """Return the value to read instead of the variable's own; None for its own."""
        ...

    def watches(self, variable: Any) -> bool:
        """Return True if it wants to hear of a variable."""
        ...

    def note_read(self, variable: Any, value: Any, *, copies: bool) -> None:
        """Remember the value that a variable was read with."""
        ...


class _Thread(threading.local):
    """Who hears of the variables that a thread reads, the innermost last."""

    def __init__(self) -> None:
        self.listeners: list[Listener] = []


here = _Thread()


def as_read(variable: Any, value: Any, *, copies: bool = False) -> Any:
    """Return the value of a variable that is being read, as the open tapes know it.

    Args:
        variable: The variable.
        value: Its value.
        copies: Whether the value is an array of the copies of all replicas.
    """
    for listener in reversed(here.listeners):
        instead = listener.value_for(variable)
        if instead is not None:
            return instead
    interested = [each for each in here.listeners if each.watches(variable)]
    if not interested or not is_differentiable(value):
        return value
    read = _read_of(value)
    for listener in interested:
        listener.note_read(variable, read, copies=copies)
    return read


def _read_of(value: Any) -> Any:
    """Return a value as an object of its own, without the derivatives of what it was computed from."""
    if not is_traced(value):
        return same_memory(value)
    records = [each.record for each in here.listeners if each.record is not None]
    if not records:
        return value
    # Below the outermost tape, even in a loop or branch inside it: these take the value as an input.
    with jax_extend_core.set_current_trace(records[0].below):
        return jax.lax.stop_gradient(value)


@contextmanager
def no_listeners() -> Generator[None]:
    """Run a block in which reads of variables are not heard."""
    outer, here.listeners = here.listeners, []
    try:
        yield
    finally:
        here.listeners = outer


def check_recordable(what: str) -> None:
    """Raise if a tape records, because it cannot follow what several replicas compute."""
    records = [each.record for each in here.listeners]
    if any(record is not None and not record.paused for record in records):
        raise ValueError(
            described(
                f"A tape that is open outside of the replicas cannot record {what}: each replica computes its own "
                "gradients.",
                fix="open the tape inside the function that is passed to strategy.run.",
            )
        )


def is_recorded(variable: Any) -> bool:
    """Return True if an open tape records and watches a variable."""
    return any(each.record is not None and each.watches(variable) for each in here.listeners)


@final
class _Reads:
    """Hears which trainable variables are read."""

    record = None

    def __init__(self) -> None:
        self.found: dict[int, Any] = {}

    def value_for(self, variable: Any) -> Any:
        del variable

    def watches(self, variable: Any) -> bool:
        return variable.trainable

    def note_read(self, variable: Any, value: Any, *, copies: bool) -> None:
        del value, copies
        self.found[id(variable)] = variable


def variables_read_by(call: Callable[[], Any]) -> list[Any]:
    """Call a function, and return the trainable variables that it reads."""
    reads = _Reads()
    with no_listeners():
        here.listeners.append(reads)
        call()
    return list(reads.found.values())


@final
class _Instead:
    """Gives variables other values."""

    record = None

    def __init__(self, values: Mapping[int, Any]) -> None:
        self._values = values

    def value_for(self, variable: Any) -> Any:
        return self._values.get(id(variable))

    def watches(self, variable: Any) -> bool:
        del variable
        return False

    def note_read(self, variable: Any, value: Any, *, copies: bool) -> None:
        """Do nothing: it watches no variable."""


@contextmanager
def reading_as(values: Mapping[int, Any]) -> Generator[None]:
    """Run a block in which variables, by identity, have other values."""
    instead = _Instead(values)
    here.listeners.append(instead)
    try:
        yield
    finally:
        here.listeners.remove(instead)
