"""Restores variables if the last step across workers failed.

A program is still running when its results are assigned to variables. If a worker is lost meanwhile, those results are
errors, and so is what the user wants to save. So the previous values of the variables are kept until the next step,
which first waits for this one.
"""

from collections.abc import Sequence
from typing import Any, Final, final

from evenfeed.core.concurrency.peers import peers
from evenfeed.replicas.variables.variable import Variable


@final
class LastStep:
    """The values that variables had before a step, and one result of the step."""

    def __init__(self) -> None:
        self._before: Sequence[tuple[Variable, Any]] = ()
        self._result: Any = None

    def start(self, before: Sequence[tuple[Variable, Any]], result: Any) -> None:
        """Record a step that was just started.

        Args:
            before: The variables that it assigns, with their previous values.
            result: One of its results. Either all results arrive, or none.
        """
        self._before, self._result = before, result

    def settle(self) -> None:
        """Wait for the step.

        Raises:
            UnavailableError: A worker is lost. The variables have their previous values again.
        """
        result, self._result = self._result, None
        if result is None:
            return
        try:
            result.block_until_ready()
        except Exception:
            self._restore()
            raise
        self._before = ()

    def rescue(self) -> None:
        """Restore the variables if the last step failed."""
        try:
            self.settle()
        except Exception:  # noqa: BLE001 - the caller is already raising it
            return

    def _restore(self) -> None:
        for variable, array in self._before:
            variable.hold(array)
        self._before = ()


last_step: Final = LastStep()
peers.at_loss(last_step.rescue)
