"""Calls a user's function only to look at it: nothing that it does to variables and iterators is kept."""

from collections import Counter
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from typing import Any, Final, final

from evenfeed.core.seeds import CallSeeds
from evenfeed.core.shapes import TensorShape
from evenfeed.core.side_effects import (
    Abandoned,
    Effect,
    Effects,
    Watcher,
    short_name,
    watched_by,
)
from evenfeed.core.specs import TensorSpec, TypeSpec
from evenfeed.core.structure import DATA, flatten, pack
from evenfeed.runtime.purity import RandomStates, generators
from evenfeed.runtime.python_state import PythonState, uses_iterator
from evenfeed.runtime.vectorise import stand_in, trace_state

# A function that pulls one iterator more often than this loops over it, and a stand-in has no end.
_MOST_PULLS: Final = 64

_ITERATES: Final = "it iterates over a dataset"


@final
class NewVariables(BaseException):
    """The function read variables that the trace did not know: it must be begun anew with them."""

    def __init__(self, variables: Iterable[Any]) -> None:
        super().__init__()
        self.variables = tuple(variables)


@final
class Probe(Watcher):
    """Answers for variables and iterators while a function is looked at.

    Args:
        effects: Where to note what the function touches.
        held: What stands for the variables that are known to be read; None where the function is not
            traced, but called with stand-ins.
        declares: Whether Python code that needs values is known by what it declares to return; otherwise the
            look ends there.

    Attributes:
        new: The variables that were read besides those.
    """

    inlines = True

    def __init__(
        self, effects: Effects, held: dict[Any, Any] | None = None, *, declares: bool = False
    ) -> None:
        self.rest = trace_state()
        self.seeds = CallSeeds(effects.seed, Counter())
        self.declares = declares
        self.new: list[Any] = []
        self._effects = effects
        self._is_traced = held is not None
        self._held = dict(held or {})
        self._pulls = Counter[int]()

    def read(self, variable: Any) -> Any:
        """Return what the function assigned, what stands for the variable, or what it holds."""
        own = variable.made_under is self
        if variable not in self._held:
            self._held[variable] = variable.at_rest()
            self.new += [] if own else [variable]
        if not own:
            self._effects.add(Effect.READS, short_name(variable))
        return self._held[variable]

    def traps(self, variable: Any) -> bool:
        """Keep all assignments from the variables."""
        if variable.made_under is not self:
            self._effects.add(Effect.ASSIGNS, short_name(variable))
        return True

    def write(self, variable: Any, value: Any) -> None:
        """Let later reads in this call find the value."""
        self._held[variable] = value

    def pull(self, iterator: Any) -> Any:
        """Return zeros like the next element, and leave the iterator where it is."""
        if iterator.made_under is self:
            if self._is_traced:
                raise Abandoned(_ITERATES)
            return None
        self._effects.add(Effect.PULLS)
        self._pulls[id(iterator)] += 1
        specs: list[TypeSpec] = flatten(iterator.element_spec, DATA)
        if self._pulls[id(iterator)] > _MOST_PULLS or not all(map(_is_known, specs)):
            raise Abandoned(self._effects.text(Effect.PULLS))
        return pack(iterator.element_spec, list(map(stand_in, specs)), DATA)

    def call(self, what: str) -> None:
        """Call no Python code that has effects of its own."""
        raise Abandoned(f"{what} needs values")

    def draw(self) -> None:
        """Note it."""
        self._effects.add(Effect.DRAWS)


def _is_known(spec: TypeSpec) -> bool:
    return isinstance(spec, TensorSpec) and spec.dtype.kind != "O" and _is_defined(spec.shape)


def _is_defined(shape: TensorShape) -> bool:
    return shape.rank is not None and shape.is_fully_defined()


@contextmanager
def looked_at(function: object, effects: Effects, *, declares: bool = False) -> Generator[None]:
    """Call a user's function in a block, for what can be learnt from that, and undo what it does.

    Raises:
        Abandoned: It takes elements from a Python iterator, which cannot be undone; or it needs values.
    """
    if uses_iterator(function):
        effects.add(Effect.PULLS)
        raise Abandoned(effects.text(Effect.PULLS))
    state, chance = PythonState(function), RandomStates(generators(function))
    try:
        with watched_by(Probe(effects, declares=declares)):
            yield
    finally:
        state.put_back()
        if chance.have_moved():
            effects.add(Effect.DRAWS)
            chance.put_back()
