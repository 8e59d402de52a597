"""TensorFlow 1's names: `tf.compat.v1`. What its programs share with TensorFlow 2 is here already."""

from typing import TYPE_CHECKING

from evenfeed import errors, nest, train
from evenfeed.core.publish import namespaces, publish, refusal
from evenfeed.core.shapes import TensorShape
from evenfeed.core.specs import TensorSpec
from evenfeed.replicas.reduction import VariableAggregation, VariableSynchronization
from evenfeed.replicas.variable_creation import variable_creator_scope
from evenfeed.replicas.variables import Variable
from evenfeed.strategy.config_proto import ConfigProto, GPUOptions

__all__ = [
    "ConfigProto",
    "GPUOptions",
    "TensorShape",
    "TensorSpec",
    "Variable",
    "VariableAggregation",
    "VariableSynchronization",
    "distribute",
    "errors",
    "nest",
    "train",
    "variable_creator_scope",
]

publish(__name__, [name for name in __all__ if name in globals()], globals())

if TYPE_CHECKING:
    from evenfeed.compat.v1 import distribute
else:
    __getattr__ = namespaces(
        __name__, {"distribute"}, refusal(__name__, __all__, "The README lists what exists now.")
    )
