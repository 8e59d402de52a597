"""The names of TensorFlow 1 that programs for TensorFlow 2 use: `tf.compat.v1`.

A name that means the same in both is evenfeed's own. If TensorFlow 1 has other arguments, an error says what to use.
"""

from typing import TYPE_CHECKING, Final

import evenfeed
from evenfeed import errors, nest, train
from evenfeed.core.publish import aliases, moved, namespaces, publish, refusal
from evenfeed.core.randomness.seeds import set_seed
from evenfeed.core.shapes import TensorShape
from evenfeed.core.specs import TensorSpec
from evenfeed.core.text.string_types import dimension_value
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
    "control_flow_v2_enabled",
    "data",
    "dimension_value",
    "distribute",
    "enable_control_flow_v2",
    "enable_eager_execution",
    "enable_resource_variables",
    "enable_tensor_equality",
    "enable_v2_behavior",
    "enable_v2_tensorshape",
    "errors",
    "executing_eagerly_outside_functions",
    "get_variable",
    "get_variable_scope",
    "gfile",
    "logging",
    "nest",
    "resource_variables_enabled",
    "set_random_seed",
    "train",
    "variable_creator_scope",
    "variable_scope",
]

# TensorFlow 1 has other arguments, or another meaning.
_DIFFERENT: Final = """
    argmax argmin assert_equal assert_greater assert_less assert_rank batch_to_space boolean_mask case compat
    cond constant_initializer debugging expand_dims experimental foldl foldr gather gather_nd image
    initializers io keras linalg lookup losses map_fn math metrics nn norm ones_initializer ones_like
    optimizers pad random random_normal_initializer random_uniform_initializer reduce_all reduce_any
    reduce_logsumexp reduce_max reduce_mean reduce_min reduce_prod reduce_sum reverse_sequence scalar_mul
    scan shape size space_to_batch sparse squeeze strings summary test transpose where while_loop
    zeros_initializer zeros_like
"""
_SAME: Final = frozenset(evenfeed.__all__) - {*_DIFFERENT.split()}

# Where TensorFlow 2 has what was at the top of TensorFlow 1.
_MOVED_TO: Final = "math linalg io strings sparse random nn image debugging signal"

set_random_seed = set_seed


def enable_eager_execution(
    config: object = None, device_policy: object = None, execution_mode: object = None
) -> None:
    """Do nothing: functions always run eagerly, or compiled in an `evenfeed.function`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.compat.v1.enable_eager_execution()
    """
    del config, device_policy, execution_mode


def enable_v2_behavior() -> None:
    """Do nothing: the behaviour is that of TensorFlow 2. The other functions `enable_…` do nothing for the same reason.

    Examples:
        >>> import evenfeed as tf
        >>> tf.compat.v1.enable_v2_behavior()
    """


enable_control_flow_v2 = enable_v2_behavior
enable_resource_variables = enable_v2_behavior
enable_tensor_equality = enable_v2_behavior
enable_v2_tensorshape = enable_v2_behavior


def executing_eagerly_outside_functions() -> bool:
    """Return True: there are no graphs. So do `control_flow_v2_enabled` and `resource_variables_enabled`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.compat.v1.executing_eagerly_outside_functions()
        True
    """
    return True


control_flow_v2_enabled = executing_eagerly_outside_functions
resource_variables_enabled = executing_eagerly_outside_functions

publish(__name__, [name for name in __all__ if name in globals()], globals())

if TYPE_CHECKING:
    from evenfeed.compat.v1 import data, distribute, gfile, logging
else:
    __getattr__ = namespaces(
        __name__,
        {"data", "distribute", "gfile", "logging"},
        aliases(
            "evenfeed",
            _SAME,
            moved(
                __name__,
                ["evenfeed", *(f"evenfeed.{place}" for place in _MOVED_TO.split())],
                refusal(
                    __name__, __all__, "The page of names in the docs lists what evenfeed provides."
                ),
            ),
        ),
    )
