"""Members that TensorFlow's tensors, shapes and dtypes have, and those of JAX and NumPy lack: what to write instead."""

import re
from typing import Final

import numpy as np

from evenfeed.core.names.missing_members import MAKE_TORCH, TORCH_MEMBERS
from evenfeed.core.shapes import TensorShape

_DTYPES: Final = {
    "as_datatype_enum": "leave it out.",
    "as_numpy_dtype": "write x.dtype.type.",
    "base_dtype": "write x.dtype.",
    "is_bool": "write x.dtype == evenfeed.bool.",
    "is_compatible_with": "compare with ==.",
    "is_complex": "write jax.numpy.iscomplexobj(x).",
    "is_floating": "write jax.numpy.issubdtype(x.dtype, jax.numpy.floating).",
    "is_integer": "write jax.numpy.issubdtype(x.dtype, jax.numpy.integer).",
    "is_unsigned": 'write x.dtype.kind == "u".',
    "limits": "write jax.numpy.iinfo(x.dtype), or jax.numpy.finfo(x.dtype).",
    "max": "write jax.numpy.finfo(x.dtype).max, or jax.numpy.iinfo(x.dtype).max for integers.",
    "min": "write jax.numpy.finfo(x.dtype).min, or jax.numpy.iinfo(x.dtype).min for integers.",
    "real_dtype": "write x.real.dtype.",
    "size": "write x.dtype.itemsize.",
}
# What PyTorch says about other tensors, and JAX about a member that its tracers lack.
_WANTS_TORCH: Final = re.compile(r"(must be|expected) Tensor\b.*\b(\w*Tracer|HostTensor)")
_TRACERS: Final = re.compile(r"Tracer has no attribute")
_NOT_TORCH: Final = f"Tensors in a dataset are not PyTorch's: {MAKE_TORCH}"


def explain_missing_member(error: Exception) -> None:
    """Add a note to an error about what a tensor, a shape or a dtype lacks in a user function."""
    if isinstance(error, TypeError) and _WANTS_TORCH.search(str(error)):
        error.add_note(_NOT_TORCH)
    if not isinstance(error, AttributeError):
        return
    owner = type(error.obj)
    if str(error).endswith("Tracer has no attribute numpy"):
        error.add_note(
            "The function is being traced: its tensors have no values yet, so numpy() is not available. "
            "Compute with jax.numpy, or call Python code on the values with evenfeed.py_function."
        )
    elif _TRACERS.search(str(error)) and error.name in TORCH_MEMBERS:
        error.add_note(_NOT_TORCH)
    elif issubclass(owner, np.dtype) and error.name in _DTYPES:
        error.add_note(f"Dtypes are NumPy's, which have no {error.name}: {_DTYPES[error.name]}")
    elif owner is tuple and error.name in vars(TensorShape):
        error.add_note(f"The shape of a jax.Array is a tuple: write x.get_shape().{error.name}.")
