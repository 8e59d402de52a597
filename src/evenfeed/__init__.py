"""evenfeed feeds every replica evenly: TensorFlow's distributed input on JAX, without TensorFlow.

`import evenfeed as tf` provides `tf.data`, `tf.distribute`, dtypes, specs, and the few tensor functions that
programs with them use. A tensor is a `jax.Array`, or a NumPy array on the host. For all other math, use
`jax.numpy`.
"""

from typing import TYPE_CHECKING

from evenfeed.core.dtypes import (
    DType,
    as_dtype,
    bfloat16,
    bool,  # noqa: A004 - TensorFlow's name
    complex64,
    complex128,
    double,
    float8_e4m3b11fnuz,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
    float16,
    float32,
    float64,
    half,
    int4,
    int8,
    int16,
    int32,
    int64,
    string,
    uint4,
    uint8,
    uint16,
    uint32,
    uint64,
)
from evenfeed.core.optional import OptionalSpec
from evenfeed.core.publish import namespaces, publish, refusal
from evenfeed.core.shapes import TensorShape
from evenfeed.core.sparse_tensors import SparseTensor
from evenfeed.core.specs import NoneTensorSpec, TensorSpec, TypeSpec, type_spec_from_value
from evenfeed.core.tensor_types import Tensor
from evenfeed.replicas.function.function import function
from evenfeed.replicas.reduce.reduce_op import VariableAggregation, VariableSynchronization
from evenfeed.replicas.variables.variable import Variable
from evenfeed.replicas.variables.variable_creation import variable_creator_scope
from evenfeed.tensors.creation import (
    constant,
    convert_to_tensor,
    is_tensor,
    ones,
    range,  # noqa: A004 - TensorFlow's name
    zeros,
)
from evenfeed.tensors.math_ops import (
    cast,
    equal,
    not_equal,
    reduce_max,
    reduce_mean,
    reduce_min,
    reduce_sum,
    square,
)
from evenfeed.tensors.printing import print_ as print  # noqa: A004 - TensorFlow's name
from evenfeed.tensors.python_calls import ensure_shape, numpy_function, py_function
from evenfeed.tensors.shaping import concat, reshape, shape, stack

__version__ = "0.1.0.dev0"

__all__ = [
    "DType",
    "NoneTensorSpec",
    "OptionalSpec",
    "SparseTensor",
    "Tensor",
    "TensorShape",
    "TensorSpec",
    "TypeSpec",
    "Variable",
    "VariableAggregation",
    "VariableSynchronization",
    "as_dtype",
    "bfloat16",
    "bool",
    "cast",
    "compat",
    "complex64",
    "complex128",
    "concat",
    "config",
    "constant",
    "convert_to_tensor",
    "data",
    "distribute",
    "double",
    "ensure_shape",
    "equal",
    "errors",
    "experimental",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float16",
    "float32",
    "float64",
    "function",
    "half",
    "image",
    "int4",
    "int8",
    "int16",
    "int32",
    "int64",
    "io",
    "is_tensor",
    "nest",
    "not_equal",
    "numpy_function",
    "ones",
    "print",
    "py_function",
    "random",
    "range",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_sum",
    "reshape",
    "shape",
    "sparse",
    "square",
    "stack",
    "string",
    "train",
    "type_spec_from_value",
    "uint4",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "variable_creator_scope",
    "zeros",
]

# Loaded on first use, to keep `import evenfeed` fast.
_NAMESPACES = {
    "compat",
    "config",
    "data",
    "distribute",
    "errors",
    "experimental",
    "image",
    "io",
    "nest",
    "random",
    "sparse",
    "train",
}

publish(__name__, [name for name in __all__ if name not in _NAMESPACES], globals())

# Replacements for the names of TensorFlow that programs most often use and evenfeed does not have.
_USE_INSTEAD = {
    "keras": "Keras 3 runs on JAX: set the environment variable KERAS_BACKEND=jax, then import keras.",
    "GradientTape": "Use JAX's gradients: jax.value_and_grad(loss)([v.value() for v in variables]).",
    "math": "Use jax.numpy: jax.numpy.exp, jax.numpy.log and so on.",
    "nn": "Use jax.nn: jax.nn.relu, jax.nn.softmax and so on.",
    "linalg": "Use jax.numpy.linalg.",
    "strings": "Use Python strings inside evenfeed.py_function.",
    "lookup": "Use a dict inside evenfeed.py_function.",
    "summary": "Use a separate writer, such as tensorboardX.",
}

if TYPE_CHECKING:
    from evenfeed import (
        compat,
        config,
        data,
        distribute,
        errors,
        experimental,
        image,
        io,
        nest,
        random,
        sparse,
        train,
    )
else:
    __getattr__ = namespaces(
        __name__,
        _NAMESPACES,
        refusal(
            __name__,
            __all__,
            "For math, use jax.numpy; the README lists what evenfeed provides.",
            _USE_INSTEAD,
        ),
    )


def __dir__() -> list[str]:
    return sorted(__all__)
