"""The names of TensorFlow 1 that input and distribution use: `tf.compat.v1`."""

from typing import TYPE_CHECKING

from evenfeed import errors, nest, train
from evenfeed.core.publish import namespaces, publish, refusal
from evenfeed.core.shapes import TensorShape
from evenfeed.core.specs import TensorSpec
from evenfeed.replicas.reduce.reduce_op import VariableAggregation, VariableSynchronization
from evenfeed.replicas.variables.named_variables import (
    AUTO_REUSE,
    VariableScope,
    get_variable,
    get_variable_scope,
    variable_scope,
)
from evenfeed.replicas.variables.variable import Variable
from evenfeed.replicas.variables.variable_creation import variable_creator_scope
from evenfeed.strategy.tf1_strategies import ConfigProto, GPUOptions

__all__ = [
    "AUTO_REUSE",
    "ConfigProto",
    "GPUOptions",
    "TensorShape",
    "TensorSpec",
    "Variable",
    "VariableAggregation",
    "VariableScope",
    "VariableSynchronization",
    "distribute",
    "errors",
    "get_variable",
    "get_variable_scope",
    "nest",
    "train",
    "variable_creator_scope",
    "variable_scope",
]

publish(__name__, [name for name in __all__ if name in globals()], globals())

if TYPE_CHECKING:
    from evenfeed.compat.v1 import distribute
else:
    __getattr__ = namespaces(
        __name__,
        {"distribute"},
        refusal(__name__, __all__, "The page of names in the docs lists what evenfeed provides."),
    )
