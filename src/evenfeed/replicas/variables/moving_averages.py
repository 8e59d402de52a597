"""`ExponentialMovingAverage`: keeps averages of the values that variables have had."""

from collections.abc import Iterable
from contextlib import nullcontext
from typing import Any, Final, final

from evenfeed.core.conversion import shortened
from evenfeed.core.errors import described
from evenfeed.replicas import contexts
from evenfeed.replicas.reduce.reduce_op import VariableAggregation
from evenfeed.replicas.variables.attaching import Attaching
from evenfeed.replicas.variables.scoped_variables import ScopedVariable
from evenfeed.replicas.variables.variable import Variable
from evenfeed.tensors.casting import cast
from evenfeed.tensors.control.scopes import name_scope
from evenfeed.tensors.math.arithmetic import minimum

# Averages are attributes of this name and a number, in the order of their creation.
_SAVED: Final = "average_of_variable_"


@final
class ExponentialMovingAverage(Attaching):
    """Keeps an average of each variable, in which recent values weigh more.

    Each `apply` computes `average -= (1 - decay) * (average - variable)`. The first one creates the averages, with the
    current values.

    Args:
        decay: The weight of the old average, close to 1.
        num_updates: The number of updates so far: averages follow faster as long as it is small. The decay is then at
            most `(1 + num_updates) / (10 + num_updates)`.
        zero_debias: Accepted for compatibility: the averages of variables start with their values, without a bias.
        name: The end of the averages' names.

    Examples:
        >>> import evenfeed as tf
        >>> v = tf.Variable(0.0)
        >>> averages = tf.train.ExponentialMovingAverage(decay=0.75)
        >>> averages.apply([v])
        >>> v.assign(8.0).numpy().tolist()
        8.0
        >>> averages.apply([v])
        >>> averages.average(v).numpy().tolist()
        2.0
    """

    def __init__(
        self,
        decay: Any,
        num_updates: Any = None,
        zero_debias: bool = False,
        name: str = "ExponentialMovingAverage",
    ) -> None:
        del zero_debias
        self._decay = decay
        self._num_updates = num_updates
        self._name = name
        self._averages: dict[Any, Any] = {}

    @property
    def name(self) -> str:
        """The end of the averages' names."""
        return self._name

    def apply(self, var_list: Iterable[Any] | None = None) -> None:
        """Update the averages of variables. The first call for a variable creates its average.

        In a replica's function, the average follows the mean of the replicas' copies.

        Args:
            var_list: The variables, of a float dtype.
        """
        if var_list is None:
            raise ValueError(
                described(
                    "apply needs the variables: evenfeed has no collections of them.",
                    fix="pass a list: averages.apply(model.trainable_variables).",
                )
            )
        variables = list(var_list)
        for variable in variables:
            _check_averaged(variable)
        for variable in variables:
            self._update(variable)

    def _update(self, variable: Any) -> None:
        if variable.ref() not in self._averages:
            self._averages[variable.ref()] = made = self._new_average(variable)
            setattr(self, f"{_SAVED}{len(self._averages) - 1}", made)  # restored if it was saved
        average = self._averages[variable.ref()]
        current, context = variable.value(), contexts.replica_context()
        if context is not None:
            current = context.all_reduce("MEAN", current)
        weight = cast(1.0 - self._current_decay(), average.dtype)
        average.assign_sub((average.value() - current) * weight)

    def _current_decay(self) -> Any:
        decay = self._decay.value() if isinstance(self._decay, Variable) else self._decay
        if self._num_updates is None:
            return decay
        updates = cast(self._num_updates, "float32")
        return minimum(decay, (1.0 + updates) / (10.0 + updates))

    def _new_average(self, variable: Any) -> Any:
        strategy = variable.distribute_strategy if isinstance(variable, ScopedVariable) else None
        # All replicas compute the same update.
        around = (
            nullcontext() if strategy is None or contexts.replica_context() else strategy.scope()
        )
        with around, name_scope(""):
            return Variable(
                variable.at_rest,  # also while a function is traced
                trainable=False,
                name=self.average_name(variable),
                aggregation=VariableAggregation.ONLY_FIRST_REPLICA,
            )

    def average(self, var: Any) -> Any:
        """Return the variable that holds the average; None if there is none."""
        return self._averages.get(var.ref())

    def average_name(self, var: Any) -> str:
        """Return the name of a variable's average.

        Examples:
            >>> import evenfeed as tf
            >>> tf.train.ExponentialMovingAverage(0.9).average_name(tf.Variable(1.0, name="w"))
            'w/ExponentialMovingAverage'
        """
        return f"{var.name.removesuffix(':0')}/{self._name}"

    def variables_to_restore(
        self, moving_avg_variables: Iterable[Any] | None = None
    ) -> dict[str, Any]:
        """Return the names under which averages are saved, with the variables that should get them.

        Args:
            moving_avg_variables: The variables; by default those with an average.
        """
        if moving_avg_variables is None:
            moving_avg_variables = [ref.deref() for ref in self._averages]
        return {self.average_name(variable): variable for variable in moving_avg_variables}


def _check_averaged(variable: Any) -> None:
    if not isinstance(variable, Variable):
        raise TypeError(
            described(
                f"An average follows a variable, but got {shortened(variable)}.",
                fix="pass evenfeed.Variable objects.",
            )
        )
    if variable.dtype.name not in {"float16", "float32", "float64", "bfloat16"}:
        raise TypeError(
            described(
                f"The variable {variable.name!r} has dtype {variable.dtype.name}, which has no average.",
                fix="pass variables of a float dtype.",
            )
        )


def saved_averages(averages: ExponentialMovingAverage) -> dict[str, Any]:
    """Return the averages, by the names under which a Checkpoint saves them."""
    return {name: value for name, value in vars(averages).items() if name.startswith(_SAVED)}
