"""What a user's function reads and changes besides its arguments: variables, iterators, chance.

Variables, iterators and `py_function` ask the watcher of their thread. Whoever calls a user's function sets
one, so that neither side has to know the other.
"""

import enum
import threading
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator
from typing import Any, final

from evenfeed.core import seeds
from evenfeed.core.iteration import reading
from evenfeed.core.seeds import CallSeeds


class Effect(enum.Enum):
    """One way in which a function is more than its arguments."""

    READS = "reads the variable {}"
    ASSIGNS = "assigns the variable {}"
    PULLS = "pulls an iterator"
    DRAWS = "draws random numbers"
    CALLS_BACK = "calls Python code at each run"
    VARIES = "returns something else each time it is called"


class Effects:
    """What was found out about one function so far. It grows while the function runs.

    Attributes:
        seed: The global seed when the function was given, which is that of its random operations.
    """

    def __init__(self) -> None:
        self.seed = seeds.global_seed()
        self._found: dict[Effect, str] = {}

    def add(self, effect: Effect, name: str = "") -> None:
        """Remember an effect; of several variables, the first is named."""
        self._found.setdefault(effect, effect.value.format(repr(name)))

    def include(self, others: "Effects") -> None:
        """Remember what other functions do, which this one makes."""
        self._found = {**others._found, **self._found}

    def __contains__(self, effect: Effect) -> bool:
        return effect in self._found

    def __iter__(self) -> Iterator[Effect]:
        return iter(tuple(self._found))

    def __bool__(self) -> bool:
        return bool(self._found)

    def text(self, *which: Effect) -> str:
        """Say what the function does; of all effects, or of `which`."""
        said = [text for effect, text in self._found.items() if not which or effect in which]
        return " and ".join(said)


def changes_state(effects: Effects) -> bool:
    """Return True if a function changes what other calls of it, or others, find."""
    return Effect.ASSIGNS in effects or Effect.PULLS in effects


@final
class ProbeAbandoned(BaseException):
    """A call that only looks at a function cannot go on: it would need values. No user catches it.

    Attributes:
        why: What it would need them for.
    """

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


class Watcher(ABC):
    """Is told what a user's function touches, and may answer in place of it.

    Attributes:
        inlines: Whether compiled functions run as part of the function that calls them.
        rest: How JAX traced when the function was called: where it traces otherwise, nothing is assigned.
        seeds: Those of the random operations in the function; None for those of the whole program.
        declares: Whether Python code that needs values is not called: what it declares to return is enough.
    """

    inlines = False
    rest: object = None
    seeds: CallSeeds | None = None
    declares = False

    @abstractmethod
    def read(self, variable: Any) -> Any | None:
        """Return what a variable holds for the function; None for what it really holds."""

    @abstractmethod
    def traps(self, variable: Any) -> bool:
        """Return True if an assignment must go to `write` instead of the variable."""

    @abstractmethod
    def write(self, variable: Any, value: Any) -> None:
        """Let a variable hold a value for the rest of the call."""

    @abstractmethod
    def pull(self, iterator: Any) -> Any | None:
        """Return what stands for the next element of an iterator; None to read it."""

    @abstractmethod
    def call(self, what: str) -> None:
        """Raise ProbeAbandoned if Python code that needs values must not be called."""

    @abstractmethod
    def draw(self) -> None:
        """Take notice that random numbers are drawn."""


class _Thread(threading.local):
    """Who watches the code of a thread."""

    watcher: Watcher | None = None


here = _Thread()


@final
class watched_by:  # noqa: N801 - called like a function; a generator would cost a call of a function its half
    """Runs a block under a watcher; under none with None."""

    __slots__ = ("_before", "_watcher")

    def __init__(self, watcher: Watcher | None) -> None:
        self._watcher = watcher

    def __enter__(self) -> None:
        watcher = self._watcher
        self._before = here.watcher, reading.instead, seeds.calling.call
        here.watcher = watcher
        reading.instead = None if watcher is None else watcher.pull
        seeds.calling.call = None if watcher is None else watcher.seeds

    def __exit__(self, *_: object) -> None:
        here.watcher, reading.instead, seeds.calling.call = self._before


@final
class Noting(Watcher):
    """Takes down what a function that runs for its result touches.

    Args:
        effects: Where to note it.
        around: Who watches the function that this one is called in.
        drawn: What random operations in the function have drawn in this pass; None for functions whose
            operations are those of the program.
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
            # Compiled, a function draws from the sequences of the program.
            self.inlines = self.inlines or Effect.DRAWS in effects

    def read(self, variable: Any) -> Any | None:
        """Note it, unless the function made the variable itself."""
        if variable.made_under is self:
            return None
        self._effects.add(Effect.READS, short_name(variable))
        return None if self._around is None else self._around.read(variable)

    def traps(self, variable: Any) -> bool:
        """Note it; the variable is assigned."""
        if variable.made_under is self:
            return False
        self._effects.add(Effect.ASSIGNS, short_name(variable))
        return False if self._around is None else self._around.traps(variable)

    def write(self, variable: Any, value: Any) -> None:
        """Pass it on."""
        if self._around is not None:
            self._around.write(variable, value)

    def pull(self, iterator: Any) -> Any | None:
        """Note it, unless the function made the iterator itself."""
        if iterator.made_under is self:
            return None
        self._effects.add(Effect.PULLS)
        return None if self._around is None else self._around.pull(iterator)

    def call(self, what: str) -> None:
        """Pass it on."""
        if self._around is not None:
            self._around.call(what)

    def draw(self) -> None:
        """Note it."""
        self._effects.add(Effect.DRAWS)
        if self._around is not None:
            self._around.draw()


def noted(effects: Effects, drawn: Counter[Any]) -> watched_by:
    """Take down what a user's function that is called in a block touches, and draws in a pass."""
    return watched_by(Noting(effects, here.watcher, drawn))


def short_name(variable: Any) -> str:
    """Return the name that a user gave to a variable."""
    return variable.name.removesuffix(":0")
