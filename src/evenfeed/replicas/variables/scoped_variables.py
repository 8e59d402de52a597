"""The base class of variables made in a strategy's scope, and the variable of a single replica."""

from typing import Any, final

from evenfeed.core import side_effects
from evenfeed.core.errors import described
from evenfeed.replicas import contexts
from evenfeed.replicas.contexts import Frame
from evenfeed.replicas.reduce.reduce_op import VariableSynchronization
from evenfeed.replicas.variables.variable import How, Variable, add, shown, subtract
from evenfeed.replicas.variables.variable_rules import (
    check_assignable,
    check_created,
    check_readable,
    is_on_read,
)


class ScopedVariable(Variable):
    """A variable made in the scope of a strategy, with one or several replicas."""

    @property
    def synchronization(self) -> VariableSynchronization:
        """When the replicas' copies are synchronized."""
        asked = self._synchronization
        return VariableSynchronization.ON_WRITE if asked is VariableSynchronization.AUTO else asked

    def _check_kind(self) -> None:
        check_created(self)

    def _own_frame(self) -> Frame | None:
        """Return the current frame if it is of the variable's own strategy, or else None."""
        level = contexts.frame()
        return level if level is not None and level.replicas is self.home else None

    def _is_inside(self) -> bool:
        """Return True if the code runs for one replica."""
        level = self._own_frame()
        return level is not None and (level.context is not None or level.updating is not None)

    def _check_strategy(self) -> None:
        level = contexts.frame()
        if level is not None and level.replicas is not self.home and not level.strategy.is_default:
            raise RuntimeError(
                described(
                    f"The variable {self.name!r} was created in the scope of another strategy, not the "
                    "current one.",
                    fix="create it in the scope of the strategy that uses it.",
                )
            )

    def __repr__(self) -> str:
        kind = "SyncOnReadVariable" if is_on_read(self) else "MirroredVariable"
        lines = [f"  {r}: {self._shown(r, copy)}" for r, copy in enumerate(self.values)]
        return f"{kind}:{{\n" + ",\n".join(lines) + "\n}"

    def _shown(self, replica: int, copy: Any) -> str:
        name = self.name if replica == 0 else f"{self.name[:-2]}/replica_{replica}:0"
        return shown(name, self.shape, copy)


@final
class LoneVariable(ScopedVariable):
    """A variable of a strategy with one replica. It is stored like a plain variable."""

    def _current(self) -> Any:
        if not self._is_inside():
            check_readable(self)
        return super()._current()

    @property
    def values(self) -> tuple[Any, ...]:
        watcher = side_effects.here.watcher
        found = None if watcher is None else watcher.read(self)
        return (super()._current() if found is None else found,)

    def _change(self, how: How, value: Any) -> Any:
        self._check_strategy()
        if not self._is_inside():
            check_assignable(self, adds=how in (add, subtract))
        return super()._change(how, value)
