"""Traces a user function twice, and compares the traces to find side effects."""

from typing import Any, TypeAlias, final

from evenfeed.core.side_effects import Effect, Effects
from evenfeed.runtime.functions.calls import Calling
from evenfeed.runtime.functions.compiled import RowShapes
from evenfeed.runtime.functions.reach.purity import RandomStates
from evenfeed.runtime.functions.reach.python_state import ReachableState
from evenfeed.runtime.functions.vectorise import Call, Traced, traced

Outcome: TypeAlias = Traced | Exception


@final
class ComparedTraces:
    """Traces a function, twice the first time, and detects random numbers and results that vary."""

    def __init__(self, calling: Calling, call: Call, effects: Effects) -> None:
        self._function = calling.function
        self._call = call
        self._effects = effects
        self._after_first: ReachableState | None = None
        self._compared = False

    def _called(self, parts: list[Any]) -> tuple[Any, list[Any]]:
        result = self._call(parts)
        if self._after_first is None:
            self._after_first = ReachableState(self._function)
        return result

    def restore_after_one_trace(self) -> None:
        """Restore the function's Python objects to their state after one trace, as in TensorFlow."""
        if self._after_first is not None:
            self._after_first.restore()

    def trace(self, rows: RowShapes) -> Outcome:
        """Trace the function for elements of these shapes; return the exception if that fails."""
        before = RandomStates.around(self._function)
        try:
            found = traced(self._called, rows)
            again = found if self._compared else traced(self._call, rows)
        except Exception as error:  # noqa: BLE001 - the caller decides what it means
            return error
        finally:
            if before.have_changed():
                before.restore()
                self._effects.add(Effect.DRAWS)
        self._compared = True
        if found.calls_back and Effect.DRAWS not in self._effects:
            self._effects.add(Effect.CALLS_BACK)
        elif found.text != again.text and Effect.DRAWS not in self._effects:
            self._effects.add(Effect.VARIES)
        return found


def without_side_effects(call: Call, function: object) -> Call:
    """Return a function for later traces, which restores the Python objects that it changes."""

    def called(parts: list[Any]) -> tuple[Any, list[Any]]:
        state = ReachableState(function)
        try:
            return call(parts)
        finally:
            state.restore()

    return called
