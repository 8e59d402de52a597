"""How many elements an iterator reads at a time, given the side effects of user functions."""

from collections.abc import Sequence
from time import perf_counter
from typing import Any, Final, final

from evenfeed.core.block import Block
from evenfeed.core.side_effects import Effect, may_run_ahead
from evenfeed.plan.node import Node
from evenfeed.runtime.functions.called_functions import Called, functions_of
from evenfeed.runtime.operator import Operator
from evenfeed.runtime.read_size import Stretch

# If a consumer keeps assigning, the most elements read one by one before more are tried.
_LONGEST_WAIT: Final = 1024


@final
class Pace:
    """Decides how many elements an iterator asks for at a time.

    It asks for more than one where that is unobservable, within the time limit of a stretch. If functions only read
    variables, it also asks for more, and elements are read again if a variable changes before they are returned.
    User Python code runs for one element at a time: code that is slow, waits for the next message or hangs must not
    hold back elements that are ready. Once a cache is complete, the code below it does not run any more.

    Args:
        plan: The plan to read.
        called: The user functions in it.
        singly: Whether to ask for single elements in any case.

    Attributes:
        ask: How many to ask for next.
    """

    def __init__(self, plan: Node, called: Sequence[Called], *, singly: bool = False) -> None:
        self.ask = 1
        self._effects = [one.effects for one in called]
        self._singly = singly
        self._waits = any(one.is_python for one in called)
        keeps = any(node.facts.keeps_passes for node in plan.walk()) if called else False
        self._may_be_hidden = keeps
        self._hidden = False  # whether the last element came from a complete cache
        self._stretch = Stretch()
        self._began = 0.0
        self._variables = _variables_of(plan)
        self._held: list[Any] = []
        self._wait = 1
        self._calm = 0

    @property
    def depends(self) -> bool:
        """True if elements depend on the values of variables."""
        return bool(self._variables)

    def begin(self) -> None:
        """Remember the values of the variables before elements are read."""
        if self._variables:
            self._held = [variable.at_rest() for variable in self._variables]
        self._began = perf_counter()

    def want(self, most: int) -> None:
        """Ask for `most` elements next, unless they are read one by one."""
        noticed = self._waits or (not self._variables and any(self._effects))
        if not (self._singly or self._calm or (noticed and not self._hidden)):
            # So that no later look spans two reads.
            self.ask = max(most, self.ask - self.ask % most)

    def is_stale(self) -> bool:
        """Return True if a variable has changed since `begin`."""
        pairs = zip(self._variables, self._held, strict=True)
        # By identity: arrays are never modified.
        return any(variable.at_rest() is not held for variable, held in pairs)

    def took_back(self) -> None:
        """Read one by one for a while, because elements had to be read again."""
        self._wait = min(2 * self._wait, _LONGEST_WAIT)
        self._calm, self.ask = self._wait, 1

    def learn(self, block: Block, operator: Operator) -> None:
        """Choose how many to ask for next, after a Block was read from an operator."""
        if self._singly:
            return
        self._calm = max(0, self._calm - 1)
        if self._calm or not self._may_ask_more(operator):
            self.ask = 1
            return
        self._stretch.learn(self.ask, block, perf_counter() - self._began)
        self.ask = self._stretch.rows

    def _may_ask_more(self, operator: Operator) -> bool:
        self._hidden = self._may_be_hidden and operator.hides_reads
        if self._hidden or self._waits:
            return self._hidden
        return bool(self._variables) or all(map(may_run_ahead, self._effects))


def _variables_of(plan: Node) -> list[Any]:
    """Return the variables that functions read; none if reading elements again would be observable."""
    found: dict[int, Any] = {}
    depending: set[int] = set()  # the nodes whose elements depend on variables
    for node in plan.bottom_up():
        for function in functions_of(node):
            others = [effect for effect in function.effects if effect is not Effect.READS]
            if others or not function.is_vectorised:
                return []
            found.update((id(variable), variable) for variable in function.variables)
        below = any(id(child) in depending for child in node.children)
        if below or any(function.variables for function in functions_of(node)):
            depending.add(id(node))
        # The number of elements must not depend on the variables' current values.
        changes = id(node) in depending and node.facts.counts_by_value
        if changes or not node.facts.rewinds:
            return []
    return list(found.values())
