"""Side effects of user functions: reading and assigning variables, pulling iterators, drawing random numbers.

Variables, iterators and `py_function` report to the watcher of their thread. The code that calls a user function
sets the watcher, so that neither side depends on the other.
"""

import enum
import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from copy import copy
from typing import Any, final

from evenfeed.core.iteration import reading
from evenfeed.core.randomness import seeds
from evenfeed.core.randomness.seeds import CallSeeds


class Effect(enum.Enum):
    """A kind of side effect: a result that depends on, or changes, more than the arguments."""

    READS = "reads the variable {}"
    ASSIGNS = "assigns the variable {}"
    PULLS = "pulls an iterator"
    DRAWS = "draws random numbers"
    # The numbers follow from the seeds and from how often the function was called in the same pass.
    DRAWS_IN_TURN = "draws random numbers in each call"
    CALLS_BACK = "calls Python code at each run"
    VARIES = "returns something else each time it is called"

    __hash__ = object.__hash__  # each read looks for effects, and Enum's own hash is Python code


class Effects:
    """The side effects of one function, as far as they are known. The set grows while the function runs.

    Attributes:
        seed: The global seed when the function was passed; its random operations use it.
    """

    def __init__(self) -> None:
        self.seed = seeds.global_seed()
        self._found: dict[Effect, str] = {}

    def copy(self) -> "Effects":
        """Return a copy, which grows separately."""
        made = copy(self)
        made._found = dict(self._found)
        return made

    def add(self, effect: Effect, name: str = "") -> None:
        """Add an effect. If it involves several variables, the text names the first."""
        self._found.setdefault(effect, effect.value.format(repr(name)))

    def include(self, others: "Effects") -> None:
        """Add the effects of other functions, which this one creates."""
        self._found = {**others._found, **self._found}

    def __contains__(self, effect: Effect) -> bool:
        return effect in self._found

    def __iter__(self) -> Iterator[Effect]:
        return iter(tuple(self._found))

    def __bool__(self) -> bool:
        return bool(self._found)

    def text(self, *which: Effect) -> str:
        """Describe all effects, or only those in `which`."""
        texts = [text for effect, text in self._found.items() if not which or effect in which]
        return " and ".join(texts)


def draws_numbers(effects: Effects) -> bool:
    """Return True if the function draws random numbers."""
    # Mostly there are no effects, and the hash of a member of an enum is Python code.
    return bool(effects) and (Effect.DRAWS in effects or Effect.DRAWS_IN_TURN in effects)


def may_run_ahead(effects: Effects) -> bool:
    """Return True if it is unobservable that the function runs for elements that nobody asked for yet."""
    return all(effect is Effect.DRAWS_IN_TURN for effect in effects)


def changes_state(effects: Effects) -> bool:
    """Return True if the function changes state that other calls can see."""
    return Effect.ASSIGNS in effects or Effect.PULLS in effects


@final
class ProbeAbandoned(BaseException):
    """A trial call of a function needs concrete values, so it cannot continue. Users never see it.

    Attributes:
        why: Why it needs values.
    """

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class Watcher(ABC):
    """Receives the side effects of a user function, and may supply values for variables and iterators.

    Attributes:
        inlines: Whether compiled functions run as part of the function that calls them.
        rest: JAX's trace state when the function was called. Assignments under any other trace are ignored.
        seeds: The seeds of the random operations in the function; None for those of the whole program.
        declares: Whether Python code that needs values is skipped, because its declared result is enough.
        draws_columns: Whether the function is traced for whole Blocks, and its random operations draw columns.
    """

    inlines = False
    rest: object = None
    seeds: CallSeeds | None = None
    declares = False
    draws_columns = False

    @abstractmethod
    def read(self, variable: Any) -> Any | None:
        """Return the value of a variable that the function should see; None for its real value."""

    @abstractmethod
    def traps(self, variable: Any) -> bool:
        """Return True if assignments must go to `write` instead of the variable."""

    @abstractmethod
    def write(self, variable: Any, value: Any) -> None:
        """Set the value of a variable for the rest of the call."""

    @abstractmethod
    def pull(self, iterator: Any) -> Any | None:
        """Return a placeholder for the next element of an iterator; None to read the element."""

    @abstractmethod
    def call(self, what: str) -> None:
        """Raise ProbeAbandoned if Python code that needs values must not be called."""

    @abstractmethod
    def draw(self) -> None:
        """Record that the function draws random numbers."""

    def show(self) -> None:  # noqa: B027 - whoever runs a function for its result has values to show
        """Raise ProbeAbandoned if the text of a value must not be that of a tracer."""


class _Thread(threading.local):
    """The watcher of this thread's code."""

    watcher: Watcher | None = None


here = _Thread()


@final
class watched_by:  # noqa: N801 - called like a function; a generator would take half the time of a call
    """Runs a block under a watcher; None means without one."""

    __slots__ = ("_before", "_watcher")

    def __init__(self, watcher: Watcher | None) -> None:
        self._watcher = watcher

    def __enter__(self) -> None:
        watcher = self._watcher
        self._before = here.watcher, reading.instead, reading.starting, seeds.calling.call
        here.watcher = watcher
        reading.instead = None if watcher is None else watcher.pull
        reading.starting = None
        seeds.calling.call = None if watcher is None else watcher.seeds

    def __exit__(self, *_: object) -> None:
        here.watcher, reading.instead, reading.starting, seeds.calling.call = self._before


@final
class Noting(Watcher):
    """Records the side effects of a function that runs for its result.

    Args:
        effects: Where to record them.
        around: The watcher of the calling function, if any.
        drawn: How often each random operation in the function has drawn in this pass; None for functions that
            use the program's random operations.
    """

    def __init__(
        self, effects: Effects, around: Watcher | None, drawn: Counter[Any] | None = None
    ) -> None:
        self._effects = effects
        self._around = around
        if around is not None:
            self.inlines, self.rest = around.inlines, around.rest
            self.declares = around.declares
        if drawn is not None:
            self.seeds = CallSeeds(effects.seed, drawn)
            # A compiled function draws from the sequences of the program.
            self.inlines = self.inlines or draws_numbers(effects)

    def read(self, variable: Any) -> Any | None:
        if variable.made_under is self:
            return None
        self._effects.add(Effect.READS, short_name(variable))
        return None if self._around is None else self._around.read(variable)

    def traps(self, variable: Any) -> bool:
        if variable.made_under is self:
            return False
        self._effects.add(Effect.ASSIGNS, short_name(variable))
        return False if self._around is None else self._around.traps(variable)

    def write(self, variable: Any, value: Any) -> None:
        if self._around is not None:
            self._around.write(variable, value)

    def pull(self, iterator: Any) -> Any | None:
        if iterator.made_under is self:
            return None
        self._effects.add(Effect.PULLS)
        return None if self._around is None else self._around.pull(iterator)

    def call(self, what: str) -> None:
        if self._around is not None:
            self._around.call(what)

    def draw(self) -> None:
        if Effect.DRAWS_IN_TURN not in self._effects:
            self._effects.add(Effect.DRAWS)
        if self._around is not None:
            self._around.draw()


def noted(effects: Effects, drawn: Counter[Any]) -> watched_by:
    """Record the side effects and the draws of a user function that is called in a `with` block."""
    return watched_by(Noting(effects, here.watcher, drawn))


def short_name(variable: Any) -> str:
    """Return the name of a variable as the user wrote it, without `:0`."""
    return variable.name.removesuffix(":0")
