"""The last step that several workers took together, until it is known to have ended well.

A program is still running when its results are assigned to variables. Where a worker is lost meanwhile, those
results are errors, and with them what the user wants to save. So what the variables held before is kept until the
next step, which waits for this one first.
"""

from collections.abc import Sequence
from typing import Any, Final, final

from evenfeed.core.concurrency.peers import peers
from evenfeed.replicas.variables.variable import Variable


@final
class LastStep:
    """What variables held before a step, and a result of it."""

    def __init__(self) -> None:
        self._before: Sequence[tuple[Variable, Any]] = ()
        self._result: Any = None

    def begin(self, before: Sequence[tuple[Variable, Any]], result: Any) -> None:
        """Note a step that has begun.

        Args:
            before: The variables that it assigns, and what they held.
            result: An array of its results: they come all at once, or none of them.
        """
        self._before, self._result = before, result

    def settle(self) -> None:
        """Wait for the step.

        Raises:
            UnavailableError: A worker is lost; the variables hold what they held before.
        """
        result, self._result = self._result, None
        if result is None:
            return
        try:
            result.block_until_ready()
        except Exception:
            self._undo()
            raise
        self._before = ()

    def rescue(self) -> None:
        """Let the variables hold what they held before a step that failed."""
        try:
            self.settle()
        except Exception:  # noqa: BLE001 - it is being raised where this is called
            return

    def _undo(self) -> None:
        for variable, array in self._before:
            variable.hold(array)
        self._before = ()


last_step: Final = LastStep()
peers.at_loss(last_step.rescue)
