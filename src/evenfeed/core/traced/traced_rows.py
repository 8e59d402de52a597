"""Operations on parts whose shape varies, such as decoded images, while a user function is traced: kernels by row.

JAX needs fixed shapes. Only operations with exactly one correct result, to the last bit, are here, so that an image of
fixed shape, which JAX computes with, gets the same values.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce
from math import prod
from typing import Any, Final, cast, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.handles import Handle
from evenfeed.core.promotion import computed_tensor
from evenfeed.core.shapes import ShapeLike, TensorShape
from evenfeed.core.specs import TensorSpec
from evenfeed.core.tensor_types import Tensor
from evenfeed.core.text.traced_texts import broadcast
from evenfeed.core.traced.kernel_stages import Kernel, RowKernel, results_of, stands_for_part

_PART: Final = None  # stands for a part among the operands
_MOST_CONSTANTS: Final = 1 << 20

_OPERATORS: Final[dict[str, np.ufunc]] = {
    "abs": np.absolute,
    "add": np.add,
    "ge": np.greater_equal,
    "gt": np.greater,
    "le": np.less_equal,
    "lt": np.less,
    "mul": np.multiply,
    "neg": np.negative,
    "sub": np.subtract,
    "truediv": np.true_divide,
}

# By the names of tensor functions. They have TensorFlow's arguments, and the dtype that the tensor function gives.
_FUNCTIONS: Final[dict[str, Callable[..., Any]]] = {
    "abs": np.abs,
    "add": np.add,
    "ceil": np.ceil,
    "clip_by_value": np.clip,
    "divide": np.true_divide,
    "floor": np.floor,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "multiply": np.multiply,
    "negative": np.negative,
    "round": np.rint,
    "sqrt": np.sqrt,
    "square": np.square,
    "subtract": np.subtract,
    "truediv": np.true_divide,
}


def operated(name: str, part: Handle, *operands: Any) -> Any:
    """Record an operator of Python; None if an operand is neither a constant nor computed from the element.

    Args:
        name: Its name in the module `operator`.
        part: One of the operands, which Python asked first.
        operands: The operands.
    """
    return _recorded(RowOperation, name, operands) if _is_number(part) else None


def called(function: str, formula: Callable[..., Any], operands: Sequence[Any]) -> Any:
    """Record a tensor function; None if it has no kernel, or no operand is a part whose shape varies.

    Args:
        function: Its name.
        formula: The function itself, which is tried with ones to find the dtype of the result.
        operands: Its arguments.
    """
    parts = [one for one in operands if isinstance(one, Handle)]
    if function not in _FUNCTIONS or not parts:
        return None
    if not all(map(_is_number, parts)):
        return None
    return _recorded(RowCall, function, operands, formula)


def cast_to(part: Handle, dtype: DType) -> Any:
    """Record a cast; None for floats that become integers, which have no result if they do not fit."""
    if not _is_number(part):
        return None
    given = part.tensor_spec.dtype
    is_exact = given.kind in "biu" or dtype.kind not in "biu"
    if not is_exact or dtypes.string in (given, dtype) or "c" in (given.kind, dtype.kind):
        return None
    return _result(RowCast(dtype), part)


def reshaped(part: Handle, lengths: Any) -> Any:
    """Record a change of shape; None if the new lengths are not constants."""
    if not _is_number(part) or (
        isinstance(lengths, TensorShape) and not lengths.is_fully_defined()
    ):
        return None
    several = isinstance(lengths, (list, tuple, TensorShape, np.ndarray))
    given = list(cast("Sequence[Any]", lengths)) if several else [lengths]
    if not all(isinstance(one, (int, np.integer)) for one in given):
        return None
    return _result(Reshape(tuple(map(int, given))), part)


def ensured(part: Handle, shape: ShapeLike) -> Any:
    """Record that a part has a shape; None for text."""
    return None if part.is_text else _result(EnsureShape(TensorShape(shape)), part)


def shape_of(part: Handle, dtype: DType) -> Any:
    """Record that the lengths of a part are asked for; None if its rank is unknown."""
    if not _is_number(part) or part.tensor_spec.shape.rank is None:
        return None
    return _result(Lengths(dtype), part)


def _is_number(part: Handle) -> bool:
    """Return True for a part that JAX cannot hold because its shape varies. If JAX can, the trace restarts."""
    part.want_array()
    return part.stands_for_tensor and not part.is_text


def _result(kernel: Kernel, *parts: Any) -> Any:
    found = results_of(kernel, *parts)
    return None if found is None else found[0]


def _recorded(kind: Any, name: str, operands: Sequence[Any], *more: Any) -> Any:
    parts = [one for one in operands if isinstance(one, Handle) or stands_for_part(one)]
    known = [_PART if _is_in(one, parts) else _constant(one) for one in operands]
    if NotImplemented in [one for one in known if not isinstance(one, np.ndarray)]:
        return None
    return _result(kind(name, tuple(map(_key, known)), tuple(known), *more), *parts)


def _is_in(value: Any, parts: Sequence[Any]) -> bool:
    return any(value is part for part in parts)


def _constant(value: Any) -> Any:
    """Return a constant as a Python number or an array; NotImplemented if it is something else."""
    if isinstance(value, (bool, int, float)):
        return value
    if not isinstance(value, (np.ndarray, np.generic, list, tuple, Tensor)):
        return NotImplemented
    try:
        array = np.array(value)
    except (TypeError, ValueError):  # JAX computes it, or it is ragged
        return NotImplemented
    if array.dtype.kind not in "biufV" or array.size > _MOST_CONSTANTS:
        return NotImplemented
    if isinstance(value, (list, tuple)):
        return cast("Any", value)  # its numbers take the dtype of the part
    return computed_tensor(array) if isinstance(value, Tensor) else array


def _key(constant: Any) -> Any:
    """Return what tells one constant from another."""
    if isinstance(constant, np.ndarray):
        array = cast("Array", constant)
        return type(array), array.dtype.str, array.shape, array.tobytes()
    return type(constant), repr(constant)


@dataclass(frozen=True)
class RowOperation(RowKernel):
    """Calls an operator of Python with the parts of an element and with constants.

    Attributes:
        name: Its name in the module `operator`.
        keys: What tells the constants from others.
        operands: The constants, and None for each part.
    """

    name: str
    keys: tuple[Any, ...]
    operands: tuple[Any, ...] = field(compare=False)

    def spec(self, *given: TensorSpec) -> TensorSpec:
        parts = iter(given)
        shapes = [
            next(parts).shape if one is _PART else TensorShape(np.shape(one))
            for one in self.operands
        ]
        joint = reduce(_together, shapes)
        try:
            return TensorSpec(joint, self._dtype([_ones(spec) for spec in given]))
        except Exception as error:
            raise TypeError(str(error)) from error  # run per element, it fails again and says why

    def one(self, *parts: Array) -> Array:
        with np.errstate(all="ignore"):
            return np.asarray(_OPERATORS[self.name](*self._arguments(parts)))

    def _dtype(self, ones: Sequence[Array]) -> DType:
        return self.one(*ones).dtype

    def _arguments(self, parts: Sequence[Any]) -> list[Any]:
        left = iter(parts)
        return [computed_tensor(next(left)) if one is _PART else one for one in self.operands]


@final
@dataclass(frozen=True)
class RowCall(RowOperation):
    """Calls a tensor function with the parts of an element and with constants.

    Attributes:
        formula: The function itself, which knows the dtype of its results.
    """

    formula: Callable[..., Any] = field(compare=False)

    def one(self, *parts: Array) -> Array:
        dtype = self._dtype([np.ones((1,) * part.ndim, part.dtype) for part in parts])
        given = [np.asarray(one).astype(dtype, copy=False) for one in self._arguments(parts)]
        with np.errstate(all="ignore"):
            return np.asarray(_FUNCTIONS[self.name](*given)).astype(dtype, copy=False)

    def _dtype(self, ones: Sequence[Array]) -> DType:
        key = tuple((one.ndim, one.dtype) for one in ones)
        if key not in self._dtypes:
            self._dtypes[key] = np.dtype(self.formula(*self._arguments(ones)).dtype)
        return self._dtypes[key]

    _dtypes: dict[Any, DType] = field(default_factory=dict[Any, DType], compare=False)


@final
@dataclass(frozen=True)
class RowCast(RowKernel):
    """Converts the values of an element to another dtype."""

    dtype: DType

    def spec(self, *given: TensorSpec) -> TensorSpec:
        return TensorSpec(given[0].shape, self.dtype)

    def one(self, *parts: Array) -> Array:
        return parts[0].astype(self.dtype, copy=False)


@final
@dataclass(frozen=True)
class Reshape(RowKernel):
    """Gives an element another shape. One of the lengths may be -1."""

    lengths: tuple[int, ...]

    def spec(self, *given: TensorSpec) -> TensorSpec:
        # A part of known shape is an array instead, so the length for -1 is unknown.
        lengths = [None if length < 0 else length for length in self.lengths]
        return TensorSpec(lengths, given[0].dtype)

    def one(self, *parts: Array) -> Array:
        return parts[0].reshape(self.lengths)


@final
@dataclass(frozen=True)
class EnsureShape(RowKernel):
    """Checks the shape of an element."""

    shape: TensorShape

    def spec(self, *given: TensorSpec) -> TensorSpec:
        return TensorSpec(given[0].shape.merge_with(self.shape), given[0].dtype)

    def one(self, *parts: Array) -> Array:
        if not self.shape.is_compatible_with(parts[0].shape):
            raise InvalidArgumentError(
                f"A tensor of shape {parts[0].shape} is not compatible with the shape {self.shape}.",
                fix="pass None for each length that may vary.",
            )
        return parts[0]


@final
@dataclass(frozen=True)
class Lengths(RowKernel):
    """Returns the length of each axis of an element."""

    dtype: DType

    def spec(self, *given: TensorSpec) -> TensorSpec:
        return TensorSpec([given[0].shape.rank], self.dtype)

    def one(self, *parts: Array) -> Array:
        return np.array(parts[0].shape, self.dtype)


def _together(one: TensorShape, two: TensorShape) -> TensorShape:
    found = broadcast(one, two)
    if found is None:
        raise TypeError(f"The shapes {one} and {two} do not broadcast.")
    return found


def _ones(spec: TensorSpec) -> Array:
    """Return ones that broadcast with whatever the rows broadcast with."""
    if spec.shape.rank is None:
        raise TypeError("The rank of a part is unknown.")
    shape = [1 if length is None else length for length in spec.shape]
    if prod(shape) > _MOST_CONSTANTS:
        shape = [1] * len(shape)
    return np.ones(shape, spec.dtype)
