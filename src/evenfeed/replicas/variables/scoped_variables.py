"""Variables made in a strategy's scope: their base class, their rules, and the variable of a single replica."""

from collections.abc import Sequence
from typing import Any, cast, final

import numpy as np

from evenfeed.core import side_effects
from evenfeed.core.conversion import shortened
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.replicas import contexts
from evenfeed.replicas.contexts import Frame
from evenfeed.replicas.reduce.reduce_op import VariableAggregation, VariableSynchronization
from evenfeed.replicas.variables.assignments import AtEntries, How, add, subtract
from evenfeed.replicas.variables.variable import Variable, shown


class ScopedVariable(Variable):
    """A variable made in the scope of a strategy, with one or several replicas."""

    @property
    def synchronization(self) -> VariableSynchronization:
        """When the replicas' copies are synchronized."""
        asked = self._synchronization
        return VariableSynchronization.ON_WRITE if asked is VariableSynchronization.AUTO else asked

    @property
    def distribute_strategy(self) -> Any:
        """The strategy in whose scope it was made."""
        return self._strategy

    @property
    def is_distributed_variable(self) -> bool:
        """True."""
        return True

    def _check_kind(self) -> None:
        check_created(self)

    def _check_scatter(self, how: AtEntries) -> None:
        check_scatter(self, how)

    def _own_frame(self) -> Frame | None:
        """Return the current frame if it is of the variable's own strategy, or else None."""
        level = contexts.frame()
        return level if level is not None and level.replicas is self.home else None

    def _is_inside(self) -> bool:
        """Return True if the code runs for one replica."""
        level = self._own_frame()
        return level is not None and (level.context is not None or level.updating is not None)

    def _assigned(self, how: How, value: Any, read_value: bool) -> Any:
        if read_value and not self._is_inside():
            check_readable(self)
        return super()._assigned(how, value, read_value)

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


# --- which variables can be created, read and assigned, and where ---------------------------


def check_synchronization(asked: dict[str, Any]) -> None:
    """Reject None in the scope of a strategy that mirrors variables, as in TensorFlow."""
    if asked.get("synchronization", VariableSynchronization.AUTO) is None:
        raise ValueError(
            described(
                "synchronization must not be None in a strategy's scope.",
                fix="leave it out, or pass VariableSynchronization.AUTO, ON_WRITE or ON_READ.",
            )
        )


def check_created(variable: Any) -> None:
    """Check that replicas can synchronize and aggregate the variable."""
    if variable.synchronization is VariableSynchronization.NONE:
        raise ValueError(
            described(
                "`NONE` variable synchronization mode is not supported in this strategy, because every replica has "
                f"a copy. Please change the `synchronization` for variable: {variable.name!r}.",
                fix="pass VariableSynchronization.ON_WRITE or ON_READ, or create it outside the scope.",
            )
        )
    if variable.aggregation is VariableAggregation.MEAN and variable.dtype.kind in "iub":
        raise ValueError(
            described(
                "Aggregation MEAN needs a floating-point variable, but "
                f"{variable.name!r} has dtype {variable.dtype.name}.",
                fix="create it with a floating-point dtype, or with aggregation=VariableAggregation.SUM.",
            )
        )


def is_on_read(variable: Any) -> bool:
    """Return True if the copies are aggregated when the variable is read."""
    return variable.synchronization is VariableSynchronization.ON_READ


def check_readable(variable: Any) -> None:
    """Check that the copies can be read as one value across replicas."""
    if is_on_read(variable) and variable.aggregation is VariableAggregation.NONE:
        raise ValueError(
            described(
                f"Could not convert from the copies of the variable {variable.name!r} to one value outside run: its "
                "aggregation is VariableAggregation.NONE.",
                fix="create it with aggregation=evenfeed.VariableAggregation.SUM or MEAN, or read its "
                "copies with strategy.experimental_local_results(variable).",
            )
        )


def check_assignable(variable: Any, *, adds: bool) -> None:
    """Check that the variable can be assigned across replicas."""
    if adds and is_on_read(variable) and variable.aggregation is VariableAggregation.SUM:
        raise ValueError(
            described(
                "A SyncOnReadVariable does not support additions outside run if its aggregation is SUM: "
                f"{variable.name!r} is the sum of its replicas' copies, and there is no replica to add to.",
                fix="add to it inside strategy.run, or assign the total with assign().",
            )
        )


def check_scatter(variable: Any, how: AtEntries) -> None:
    """Check that the replicas' changes of entries can be combined."""
    if is_on_read(variable):
        raise NotImplementedError(
            described(
                f"{how.name} needs a variable that is synchronized on write, but {variable.name!r} is synchronized on "
                "read.",
                fix="create it without synchronization=VariableSynchronization.ON_READ, or assign the whole value.",
            )
        )
    combines = variable.aggregation in (VariableAggregation.SUM, VariableAggregation.MEAN)
    if combines and not how.adds_up:
        raise NotImplementedError(
            described(
                f"{how.name} cannot combine the replicas' rows by {variable.aggregation.name}, the aggregation of "
                f"{variable.name!r}.",
                fix="create it with aggregation=VariableAggregation.ONLY_FIRST_REPLICA or NONE.",
            )
        )


def check_adds_up(variable: Any) -> None:
    """Reject the sum of bools over replicas, because it would not be a bool."""
    sums = variable.aggregation is VariableAggregation.SUM and variable.replicas.count > 1
    if sums and variable.dtype.kind == "b":
        raise InvalidArgumentError(
            f"The variable {variable.name!r} of dtype bool cannot be summed over the replicas.",
            fix="create it with aggregation=evenfeed.VariableAggregation.ONLY_FIRST_REPLICA, or with an integer "
            "dtype.",
        )


def check_summable(variable: Any, value: Any) -> None:
    """Reject a Python number assigned by each replica to a sum: it is unclear if it counts once or n times."""
    if variable.aggregation is VariableAggregation.SUM and _is_python_number(value):
        raise ValueError(
            described(
                f"Each replica assigns the Python number {shortened(value)} to the variable {variable.name!r}, "
                "which has aggregation SUM. It is unclear whether the number counts once or once per replica.",
                fix="pass a tensor to sum it over the replicas, evenfeed.constant(value); or create the variable "
                "with aggregation=evenfeed.VariableAggregation.MEAN or ONLY_FIRST_REPLICA.",
            )
        )


def _is_python_number(value: Any) -> bool:
    """Return True for a number other than 0, and for lists and tuples that contain one."""
    if isinstance(value, (list, tuple)):
        return any(map(_is_python_number, cast("Sequence[Any]", value)))
    return (
        isinstance(value, (bool, int, float, complex))
        and not isinstance(value, np.generic)
        and value != 0
    )
