"""The base of steps that are made from others, one of each."""

from collections.abc import Sequence
from typing import Any

from evenfeed.feeding.host_steps import HostSteps
from evenfeed.runtime.elements import ElementIterator


class ChangedSteps(HostSteps):
    """Changes the columns of other steps, at the same positions."""

    def __init__(self, steps: HostSteps) -> None:
        self._steps = steps

    def advance(self, count: int) -> None:
        self._steps.advance(count)

    def iterators(self) -> Sequence[ElementIterator]:
        return self._steps.iterators()

    def state(self) -> Any:
        return self._steps.state()

    def restore(self, state: Any) -> None:
        self._steps.restore(state)

    def close(self) -> None:
        self._steps.close()
