"""Runs a formula of `jax.numpy` on the arguments of a tensor function: the steps that all functions share.

A tensor function is a signature, a docstring, and one call of `apply`, `elementwise` or `rearrange`. They convert the
arguments, check their dtypes, keep 64-bit host values exact, and turn errors of JAX into errors of evenfeed.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Final, final

import numpy as np

from evenfeed.core import dtypes, promised_shapes
from evenfeed.core.conversion import Array, to_array
from evenfeed.core.conversion import is_tensor as is_array
from evenfeed.core.dtypes import DType, in_wanted_dtype
from evenfeed.core.errors import EvenfeedError, InvalidArgumentError
from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.core.promised_shapes import promise_result
from evenfeed.core.promotion import (
    KEEPS_64_BITS,
    NARROWER,
    computed_tensor,
    default_dtype,
    fits_32_bits,
)
from evenfeed.core.ragged.ragged_operators import values_for
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.core.ragged.wrong_dtypes import WrongDtypeError
from evenfeed.core.sparse.sparse_tensors import SparseTensor
from evenfeed.core.tensor_types import host_tensor
from evenfeed.core.traced import traced_rows
from evenfeed.tensors.creation import (
    convert_to_tensor,
    holds_device_arrays,
    is_on_device,
    read,
)
from evenfeed.tensors.device_arrays import (
    held_dtype,
    is_traced,
    is_tracing,
    remembering,
    to_device_array,
)
from evenfeed.tensors.exact_numbers import exact_arrays, own_tensor, stay_on_host, twin_of


@final
@dataclass(frozen=True, slots=True)
class Accepted:
    """The dtypes that a function accepts.

    Attributes:
        what: Their name in errors.
        refused: The kinds of NumPy dtypes that it refuses.
        example: A dtype to convert other values to.
    """

    what: str
    refused: str
    example: str


ANY: Final = Accepted("tensors", "", "float32")
NUMBERS: Final = Accepted("numbers", "bO", "int32")
REALS: Final = Accepted("real numbers", "bOc", "float32")
FLOATS: Final = Accepted("floats", "biuO", "float32")
REAL_FLOATS: Final = Accepted("real floats", "biuOc", "float32")
INTEGERS: Final = Accepted("integers", "bfcOV", "int32")
BOOLS: Final = Accepted("bools", "iufcOV", "bool")
ORDERED: Final = Accepted("real numbers or bools", "Oc", "float32")
COMPUTABLE: Final = Accepted("numbers or bools", "O", "int32")

# Functions that keep 0, and that TensorFlow too computes for sparse tensors.
_OF_SPARSE: Final = frozenset(
    {"abs", "negative", "sign", "sin", "sqrt", "square", "stop_gradient", "tanh"}
)

_PYTHON_TYPES: Final[dict[str, type]] = {"b": bool, "i": int, "u": int, "f": float, "c": complex}


def apply(
    function: str,
    formula: Callable[..., Any],
    *operands: object,
    accepts: Accepted = NUMBERS,
    host: Callable[..., Any] | None = None,
) -> Any:
    """Return what `formula` computes from the operands as JAX arrays.

    Python numbers take the dtype of the first tensor among the operands, if they can. 64-bit values of the host
    are computed with 64 bits, even if JAX runs with 32: otherwise a sum of int64 values that each fit into 32 bits
    would wrap around silently. The result must fit, like every value that becomes a tensor. What is known while JAX
    traces stays known, so that a length can be computed from `shape`.

    Args:
        function: The name of the function, for errors.
        formula: A function of JAX arrays. It may return a structure of arrays.
        operands: Anything that can become a tensor.
        accepts: The dtypes that the operands may have.
        host: The same formula of NumPy arrays, for single elements; see `exact_arrays`. It may return NotImplemented.
    """
    if accepts is BOOLS:
        operands = tuple(in_wanted_dtype(operand, dtypes.bool) for operand in operands)
    given = converted_together(operands)
    check_dtypes(function, given, accepts)
    exact = None if host is None else exact_arrays(given)
    if host is not None and exact is not None:
        with np.errstate(all="ignore"):
            found = _computed(function, host, exact)
        if found is not NotImplemented:
            return own_tensor(exact, found)
    on_host = not any(isinstance(operand, jax.Array) for operand in given)
    if on_host and any(operand.size and _is_too_wide(operand) for operand in given):
        with jax.enable_x64(True), jax.ensure_compile_time_eval():
            found = _computed(function, formula, [jnp.asarray(operand) for operand in given])
        return jax.tree.map(partial(_on_device, function), found)
    tensors = [_tensor(operand) for operand in given]
    with evaluated_if_known(tensors):
        found = _computed(function, formula, tensors)
    return jax.tree.map(_as_fact, found) if is_tracing() and _is_fact(operands) else found


def _is_fact(operands: Iterable[object]) -> bool:
    """Return True if an operand is a fact about a shape, and the others are known."""
    has_fact = any(isinstance(one, np.ndarray | np.integer) for one in operands)
    return has_fact and not any(isinstance(one, jax.Array) for one in operands)


def _as_fact(found: Any) -> Any:
    """Return integers on the host: operators of JAX arrays return something that is not known while JAX traces."""
    is_known = isinstance(found, jax.Array) and found.dtype.kind in "iu" and not is_traced(found)
    return computed_tensor(np.asarray(found)) if is_known else found


def elementwise(
    function: str,
    formula: Callable[..., Any],
    *operands: object,
    accepts: Accepted = NUMBERS,
    host: Callable[..., Any] | None = None,
) -> Any:
    """Like `apply`, for a formula that computes each value of the result from the values at the same place.

    A ragged operand makes a ragged result with the same rows; a sparse one, if 0 stays 0, a sparse result.
    """
    rows = next((operand for operand in operands if isinstance(operand, RaggedTensor)), None)
    if rows is not None:
        flat = [values_for(rows, operand) for operand in operands]
        return rows.with_flat_values(
            elementwise(function, formula, *flat, accepts=accepts, host=host)
        )
    if function in _OF_SPARSE and isinstance(operands[0], SparseTensor):
        values = elementwise(function, formula, operands[0].values, accepts=accepts, host=host)
        return operands[0].with_values(values)
    by_row = traced_rows.called(
        function, partial(elementwise, function, formula, accepts=accepts), operands
    )
    if by_row is not None:
        return by_row
    twin = host or twin_of(formula)
    found = apply(
        function,
        partial(_broadcast, function, formula),
        *operands,
        accepts=accepts,
        host=None if twin is None else partial(_broadcast, function, twin),
    )
    return shaped_by(found, *operands)


def rearrange(function: str, formula: Callable[..., Any], *operands: object) -> Any:
    """Return what `formula(np, ...)` makes of text and `formula(jnp, ...)` of numbers.

    In a function that a dataset calls for each element, NumPy moves numbers of the host, too: JAX takes 50 times as long,
    and compiles a program for each new shape.

    Args:
        function: The name of the function, for errors.
        formula: A function of a module, `numpy` or `jax.numpy`, and of arrays.
        operands: Anything that can become a tensor.
    """
    given = converted_together(operands)
    has_text = any(is_text(operand) for operand in given)
    if not has_text and not stay_on_host(given):
        return apply(function, partial(formula, jnp), *given, accepts=ANY)
    arrays = [np.asarray(operand) for operand in given]
    found = _computed(function, partial(formula, np), arrays)
    tensor = _text_tensor if has_text else partial(own_tensor, arrays)
    if isinstance(found, (list, tuple)):
        return type(found)(map(tensor, found))  # pyright: ignore
    return tensor(found)


def _text_tensor(found: Any) -> Any:
    """Return a tensor for an array, or for the bytes that NumPy returns instead of text without axes."""
    return host_tensor(np.array(found, dtypes.string) if isinstance(found, bytes) else found)


def shaped_by(found: Any, *operands: object) -> Any:
    """Return the result of an elementwise function, with the shapes that are promised for its operands."""
    if promised_shapes.here.promised:
        promise_result(found, operands)
    return found


def converted_together(operands: Iterable[object]) -> list[Any]:
    """Convert the operands of one function to JAX arrays or NumPy arrays.

    Python numbers, and lists of them, take the dtype of the first tensor among the operands, or of the first
    operand, if they can. Otherwise they have 64 bits only if that tensor has them.
    """
    read_ones = [_read(operand) for operand in operands]
    arrays = [operand for operand in read_ones if is_array(operand)]
    like = dtypes.as_dtype(arrays[0].dtype) if arrays else None
    found: list[Any] = []
    for operand in read_ones:
        if isinstance(operand, jax.Array):
            found.append(operand)
        else:
            found.append(to_array(operand) if is_array(operand) else _number(operand, like))
        like = like or found[-1].dtype
    return found


def check_dtypes(function: str, tensors: Iterable[Any], accepts: Accepted) -> None:
    """Raise WrongDtypeError if a tensor has a dtype that the function does not accept."""
    for tensor in tensors:
        if tensor.dtype.kind in accepts.refused:
            raise WrongDtypeError(
                f"{function} needs {accepts.what}, but got {dtypes.name_of(tensor.dtype)}.",
                fix=f"convert the values first, for example evenfeed.cast(x, evenfeed.{accepts.example}).",
            )


def evaluated_if_known(tensors: Iterable[Any]) -> AbstractContextManager[Any]:
    """Return a context in which JAX computes at once, if it traces and all tensors are known."""
    if any(is_traced(tensor) for tensor in tensors) or not is_tracing():
        return nullcontext()
    return jax.ensure_compile_time_eval()


def wide(tensor: Any, dtype: DType) -> Any:
    """Convert to a 64-bit dtype that TensorFlow's function returns by default.

    Without x64 the tensor has 32 bits, and datasets remember the dtype. There is no warning: the user did not ask for
    64 bits. In the function of a `map`, the result has 64 bits.
    """
    held = held_dtype(dtype)
    if held == dtype and is_traced(tensor):
        return _marked(dtype)(tensor)
    return remembering(tensor.astype(held), dtype)


def in_dtype(tensor: Any, dtype: object) -> Any:
    """Convert to the dtype of an argument, or to that of an operand from which the values do not follow."""
    asked = dtypes.as_dtype(dtype)
    return wide(tensor, asked) if asked in NARROWER else tensor.astype(asked)


def is_text(tensor: Any) -> bool:
    """Return True for a tensor of text, which is a NumPy array."""
    return tensor.dtype == dtypes.string


@cache
def _marked(dtype: DType) -> Callable[[Any], Any]:
    """Return a conversion that runtime/functions/vectorise.py recognizes by its name."""

    def convert(tensor: Any) -> Any:
        return tensor.astype(dtype)

    convert.__name__ = KEEPS_64_BITS
    return jax.jit(convert)


def _read(operand: object) -> Any:
    if is_on_device(operand):
        return read(operand)
    return convert_to_tensor(operand) if holds_device_arrays(operand) else operand


def _number(value: object, like: DType | None) -> Array:
    """Convert a Python value to the dtype of the tensor beside it, if it can have that."""
    if like is None:
        return to_array(value)
    try:
        return to_array(value, like)
    except TypeError:
        array = to_array(value)
        kind = _PYTHON_TYPES.get(array.dtype.kind)
        if kind is None or not fits_32_bits(array):
            return array
        return array.astype(default_dtype(kind, like))


def _is_too_wide(array: Array) -> bool:
    return held_dtype(array.dtype) != array.dtype


def _tensor(operand: Any) -> Any:
    if isinstance(operand, jax.Array) or is_text(operand):
        return operand
    return to_device_array(operand, "the tensor")


def _on_device(function: str, result: Any) -> Any:
    return to_device_array(np.asarray(result), f"the result of {function}")


def _broadcast(function: str, formula: Callable[..., Any], *tensors: Any) -> Any:
    try:
        np.broadcast_shapes(*(tensor.shape for tensor in tensors))
    except ValueError:
        shapes = " and ".join(str(tuple(tensor.shape)) for tensor in tensors)
        raise InvalidArgumentError(
            f"{function} got tensors of shapes {shapes}, which do not broadcast.",
            fix="pass tensors of the same shape, or of shapes that broadcast.",
        ) from None
    return formula(*tensors)


def _computed(function: str, formula: Callable[..., Any], tensors: Sequence[Any]) -> Any:
    try:
        return formula(*tensors)
    except (TypeError, ValueError, IndexError) as error:
        # JAX's own classes say that a value is needed which a trace does not have: the function then runs per element.
        if isinstance(error, EvenfeedError) or type(error).__module__.startswith("jax"):
            raise
        shapes = ", ".join(f"{dtypes.name_of(t.dtype)}{list(t.shape)}" for t in tensors)
        text = str(error).partition("\n")[0]
        raise InvalidArgumentError(
            f"{function} cannot compute with {shapes}: {text}",
            fix="check the shapes and dtypes of the arguments.",
        ) from error
