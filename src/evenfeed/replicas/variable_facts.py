"""What a variable says of itself, whatever it holds."""

from collections.abc import Callable
from typing import Any, final

import numpy as np

from evenfeed.core.dtypes import DType
from evenfeed.core.shapes import TensorShape
from evenfeed.replicas.reduction import VariableAggregation, VariableSynchronization
from evenfeed.replicas.variable_arithmetic import Arithmetic


class Facts(Arithmetic):
    """The facts of a variable, and what stands for it."""

    _name: str
    _trainable: bool
    _synchronization: VariableSynchronization
    _aggregation: VariableAggregation
    _constraint: Callable[[Any], Any] | None
    _dtype: "np.dtype[Any]"
    _shape: TensorShape

    @property
    def name(self) -> str:
        """How it is shown. Several variables may have one name."""
        return self._name

    @property
    def trainable(self) -> bool:
        """Whether an optimizer should change it."""
        return self._trainable

    @property
    def synchronization(self) -> VariableSynchronization:
        """When the replicas' copies are brought together."""
        return self._synchronization

    @property
    def aggregation(self) -> VariableAggregation:
        """How what the replicas assign becomes one value."""
        return self._aggregation

    @property
    def constraint(self) -> Callable[[Any], Any] | None:
        """The function that an optimizer calls on a new value."""
        return self._constraint

    @property
    def dtype(self) -> DType:
        """The dtype of its value."""
        return self._dtype

    @property
    def shape(self) -> TensorShape:
        """The shape of its value."""
        return self._shape

    def get_shape(self) -> TensorShape:
        """Return the shape of its value."""
        return self._shape

    def ref(self) -> "Reference":
        """Return what stands for this very variable: a key of dicts, equal to itself alone."""
        return Reference(self)

    experimental_ref = ref


@final
class Reference:
    """Stands for one variable, by which it is compared and hashed."""

    __slots__ = ("_variable",)

    def __init__(self, variable: Any) -> None:
        self._variable = variable

    def deref(self) -> Any:
        """Return the variable."""
        return self._variable

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Reference) and other._variable is self._variable

    def __hash__(self) -> int:
        return id(self._variable)

    def __repr__(self) -> str:
        return f"<Reference wrapping {self._variable!r}>"
