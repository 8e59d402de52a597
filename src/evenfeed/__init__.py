"""evenfeed feeds every replica evenly: TensorFlow's distributed input on JAX, without TensorFlow.

`import evenfeed as tf` provides `tf.data`, `tf.distribute`, dtypes, specs, and the tensor functions that programs
with them use. A tensor is a `jax.Array`, or a NumPy array on the host: everything in `jax.numpy` accepts it.
"""

# ruff: noqa: F405 - the tensor functions come from `tensors/top_level.py`

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
from evenfeed.core.publish import members_of, namespaces, publish, refusal
from evenfeed.core.ragged.ragged_specs import RaggedTensorSpec
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
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

__version__ = "0.1.0.dev0"

__all__ = [
    "DType",
    "NoneTensorSpec",
    "OptionalSpec",
    "RaggedTensor",
    "RaggedTensorSpec",
    "SparseTensor",
    "Tensor",
    "TensorShape",
    "TensorSpec",
    "TypeSpec",
    "Variable",
    "VariableAggregation",
    "VariableSynchronization",
    "abs",
    "acos",
    "acosh",
    "add",
    "add_n",
    "argmax",
    "argmin",
    "as_dtype",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "bfloat16",
    "bitcast",
    "bitwise",
    "bool",
    "cast",
    "compat",
    "complex",
    "complex64",
    "complex128",
    "concat",
    "config",
    "constant",
    "convert_to_tensor",
    "cos",
    "cosh",
    "cumsum",
    "data",
    "distribute",
    "divide",
    "double",
    "dtypes",
    "ensure_shape",
    "equal",
    "errors",
    "exp",
    "experimental",
    "float8_e4m3b11fnuz",
    "float8_e4m3fn",
    "float8_e4m3fnuz",
    "float8_e5m2",
    "float8_e5m2fnuz",
    "float16",
    "float32",
    "float64",
    "floor",
    "function",
    "greater",
    "greater_equal",
    "half",
    "image",
    "int4",
    "int8",
    "int16",
    "int32",
    "int64",
    "io",
    "is_tensor",
    "less",
    "less_equal",
    "logical_and",
    "logical_not",
    "logical_or",
    "lookup",
    "math",
    "maximum",
    "minimum",
    "multiply",
    "negative",
    "nest",
    "nn",
    "not_equal",
    "numpy_function",
    "ones",
    "pow",
    "print",
    "py_function",
    "ragged",
    "random",
    "range",
    "realdiv",
    "reduce_all",
    "reduce_any",
    "reduce_logsumexp",
    "reduce_max",
    "reduce_mean",
    "reduce_min",
    "reduce_prod",
    "reduce_sum",
    "reshape",
    "round",
    "saturate_cast",
    "scalar_mul",
    "shape",
    "sigmoid",
    "sign",
    "sin",
    "sinh",
    "sparse",
    "sqrt",
    "square",
    "stack",
    "string",
    "strings",
    "subtract",
    "tan",
    "tanh",
    "train",
    "truediv",
    "truncatediv",
    "truncatemod",
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
    "bitwise",
    "compat",
    "config",
    "data",
    "distribute",
    "dtypes",
    "errors",
    "experimental",
    "image",
    "io",
    "lookup",
    "math",
    "nest",
    "nn",
    "ragged",
    "random",
    "sparse",
    "strings",
    "train",
}

if TYPE_CHECKING:
    from evenfeed import (
        bitwise,
        compat,
        config,
        data,
        distribute,
        dtypes,
        errors,
        experimental,
        image,
        io,
        lookup,
        math,
        nest,
        nn,
        ragged,
        random,
        sparse,
        strings,
        train,
    )
    from evenfeed.tensors.top_level import *  # noqa: F403
else:
    publish(__name__, [name for name in __all__ if name in globals()], globals())
    __getattr__ = namespaces(
        __name__,
        _NAMESPACES,
        members_of(
            "evenfeed.tensors.top_level",
            __name__,
            refusal(
                __name__, __all__, "The page of names in the docs lists what evenfeed provides."
            ),
        ),
    )


def __dir__() -> list[str]:
    return sorted(__all__)
