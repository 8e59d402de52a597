"""Converts Python values to arrays by TensorFlow's rules: int to int32, float to float32, str to bytes."""

from collections.abc import Iterable, Sequence, Sized
from functools import cache
from itertools import chain
from typing import Any, Final, Protocol, TypeAlias, TypeGuard, cast, runtime_checkable

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import InvalidArgumentError, described, shortened
from evenfeed.core.promotion import dtype_of_tensors, stackable, unwrapped
from evenfeed.core.tensor_types import HostTensor, asked_width
from evenfeed.core.text.text_values import as_bytes, bytes_array

Array: TypeAlias = np.ndarray[Any, np.dtype[Any]]
Positions: TypeAlias = np.ndarray[Any, np.dtype[np.int64]]


@runtime_checkable
class Arrayable(Protocol):
    """A value that NumPy can convert to an array, such as a pandas table."""

    def __array__(self) -> Array: ...


@runtime_checkable
class TensorLike(Protocol):
    """An array of any library that NumPy can convert: NumPy, JAX, PyTorch."""

    @property
    def shape(self) -> Any:
        """The length of each axis."""
        ...

    @property
    def dtype(self) -> Any:
        """The dtype of the values."""
        ...

    def __array__(self) -> Array: ...


_NOT_TENSORS: Final = (str, bytes, int, float, complex, list, tuple, dict, type, type(None))


def is_tensor(value: object) -> TypeGuard[TensorLike]:
    """Return True if `value` already is an array, with a shape and a dtype."""
    if isinstance(value, (np.ndarray, np.generic)):
        return True
    return not isinstance(value, _NOT_TENSORS) and isinstance(value, TensorLike)


def to_array(value: object, dtype: DType | None = None) -> Array:
    """Return `value` as a NumPy array, with the dtype that TensorFlow would give it.

    An array keeps its dtype and is not copied. A Python int becomes int32 (int64 if it does not fit),
    a Python float becomes float32. Text becomes UTF-8 bytes.
    """
    if isinstance(value, bytes):  # also np.bytes_: an array of it would drop trailing zero bytes
        return _from_python(value, dtype)
    if is_tensor(value):
        return _from_tensor(value, dtype)
    arrays = stackable(value)
    if arrays is not None:
        return _from_tensor(np.stack(arrays), dtype or _default_of_stacked(arrays))
    if _is_arrayable(value):
        return _from_table(value, dtype)
    return _from_python(value, dtype)


def to_component(value: object) -> Array:
    """Return one part of an element as a NumPy array.

    Arrays in nested lists keep their dtype if they share one, so a list of images stays uint8.
    `to_array` converts such integers to int32, as `tf.constant` does.
    """
    return to_array(value, _number_dtype_in_lists(value))


def _number_dtype_in_lists(value: Any) -> DType | None:
    """Return the dtype of the numeric arrays in nested lists; None if it differs, or there are other values."""
    first = value
    while type(first) is list and first:
        first = cast("list[Any]", first)[0]
    if type(value) is not list or not isinstance(first, np.ndarray):
        return None
    level: list[Any] = [value]
    found: set[DType] = set()
    while level:
        arrays: list[Array] = [part for part in level if isinstance(part, np.ndarray)]
        lists: list[list[Any]] = [part for part in level if type(part) is list]
        texts = any(array.dtype.kind in "OSUMm" for array in arrays)
        if texts or len(arrays) + len(lists) < len(level):
            return None
        found |= {_known_dtype(array) for array in arrays}
        level = list(chain.from_iterable(lists))
    return found.pop() if len(found) == 1 else None


def _is_arrayable(value: object) -> TypeGuard[Arrayable]:
    return not isinstance(value, _NOT_TENSORS) and isinstance(value, Arrayable)


def _from_table(value: Arrayable, dtype: DType | None) -> Array:
    array = _numpy_of(value)
    if array.dtype == dtypes.string and array.ndim == 2 and len(set(map(type, array.flat))) > 1:
        raise ValueError(
            described(
                f"A tensor holds one kind of value, but the columns of this {type(value).__name__} differ.",
                fix="pass the columns as a dict: dict(frame).",
            )
        )
    return _from_tensor(array, dtype)


def _from_tensor(value: TensorLike, dtype: DType | None) -> Array:
    array = _numpy_of(value)
    if (wide := asked_width(value)) is not None:
        array = array.astype(wide)
    known = _known_dtype(array)
    if known == dtypes.string:
        array = as_bytes(array)
    elif array.dtype != known:  # non-native byte order
        array = array.astype(known)
    if dtype is None or dtype == known:
        return array
    if dtypes.string in (dtype, known):
        raise cannot_hold(value, dtype)
    return array.astype(dtype)


def _numpy_of(value: Any) -> Array:
    """Convert an array of another library (pandas, PyTorch, JAX) to NumPy."""
    try:
        return np.asarray(value)
    except Exception as error:
        if type(error).__module__.partition(".")[0] == "jax":
            raise  # the value is a tracer: the caller handles that
        kind = f" of dtype {value.dtype}" if isinstance(value, TensorLike) else ""
        raise TypeError(
            described(
                f"A {type(value).__name__}{kind} cannot become a tensor: {_first_line(error)}",
                fix="convert it to a NumPy array first; for a PRNG key, pass jax.random.key_data(key).",
            )
        ) from error


def _first_line(error: Exception) -> str:
    return str(error).partition("\n")[0]


def check_has_numbers(array: TensorLike) -> None:
    """Raise TypeError for a JAX array whose dtype NumPy does not know, such as a PRNG key."""
    if not isinstance(array.dtype, np.dtype):
        raise TypeError(
            described(
                f"An array of dtype {array.dtype} cannot become a tensor: it holds no numbers.",
                fix="if it is a PRNG key, pass jax.random.key_data(key).",
            )
        )


def _known_dtype(array: Array) -> DType:
    try:
        return dtypes.as_dtype(array.dtype)
    except TypeError:
        raise ValueError(
            described(
                f"An array of dtype {array.dtype} cannot become a tensor.",
                fix="convert it to numbers or text first, with array.astype(...).",
            )
        ) from None


def _from_python(value: object, dtype: DType | None) -> Array:
    shape, leaves, of_tensors = _flat(value)
    kind = _common_kind(leaves, value)
    if dtype is None and of_tensors is not None and _is_taken(kind, of_tensors):
        dtype = of_tensors
    if dtype is None:
        dtype = _default_dtype(kind, leaves)
    elif kind is not None and not _may_become(kind, dtype):
        raise cannot_hold(value, dtype)
    elif kind == "int" and (dtype.kind in "iu" or dtype in _NARROW):
        _check_fits(leaves, dtype)
    if dtype == dtypes.string:
        return bytes_array(leaves).reshape(shape)
    with np.errstate(over="ignore"):  # too large for a narrow float: infinity, as in TensorFlow
        return np.array(leaves, dtype).reshape(shape)


def _is_taken(kind: str | None, dtype: DType) -> bool:
    """Return True if Python numbers of this kind take the dtype of the tensors beside them."""
    return kind in ("int", "float", "complex") and _may_become(kind, dtype)


def _default_of_stacked(arrays: list[Array]) -> DType | None:
    """Return the dtype that TensorFlow gives a list of these arrays; None to keep theirs.

    TensorFlow converts integer NumPy arrays in a list to int32. Tensors keep their dtype.
    """
    if arrays[0].dtype.kind in "iu" and not isinstance(arrays[0], HostTensor):
        return _default_int([int(f(array)) for array in arrays for f in (np.min, np.max)])
    return None


def _flat(value: object) -> tuple[tuple[int, ...], list[Any], DType | None]:
    """Flatten nested sequences level by level. Returns the shape, the values in order, and the dtype of the tensors."""
    shape: list[int] = []
    level: list[Any] = [value]
    samples = _samples(level)
    while any(map(_is_sequence, samples)):
        if not all(map(_is_sequence, level)):
            raise _not_rectangular(value)
        lengths = set(map(len, level))
        if len(lengths) > 1:
            raise _not_rectangular(value)
        shape.append(lengths.pop())
        level = _in_numpy(list(chain.from_iterable(level)))
        samples = _samples(level)
    if not any(isinstance(one, np.ndarray) for one in samples):
        return tuple(shape), level, None
    return tuple(shape), list(map(unwrapped, level)), dtype_of_tensors(level)


def _in_numpy(level: list[Any]) -> list[Any]:
    """Convert arrays of other libraries to NumPy; they may not support len()."""
    if not any(map(_is_foreign, _samples(level))):
        return level
    return [np.asarray(item) if _is_foreign(item) else item for item in level]


def _is_foreign(item: object) -> bool:
    return is_tensor(item) and not isinstance(item, (np.ndarray, np.generic))


def _samples(level: Iterable[object]) -> Iterable[object]:
    """Return one value of each type in `level`, for checks that depend only on the type."""
    return {type(item): item for item in level}.values()


def _is_sequence(value: object) -> bool:
    if is_tensor(value):
        return len(value.shape) > 0
    return isinstance(value, Sequence) and not isinstance(value, (str, bytes))


_NARROW: Final[dict[DType, tuple[int, int]]] = {dtypes.int4: (-8, 7), dtypes.uint4: (0, 15)}

# Maps each kind of Python value to the NumPy dtype kinds that it may become.
_ALLOWED: Final = {"bool": "biufcV", "int": "iufcV", "float": "fcV", "complex": "c", "text": "O"}


def _common_kind(leaves: list[Any], value: object) -> str | None:
    """Return the widest kind among the leaves; None if there are no leaves."""
    kinds = {_kind(type(leaf), leaf) for leaf in _samples(leaves)}
    if kinds <= {"int", "float", "complex"}:
        return next((kind for kind in ("complex", "float", "int") if kind in kinds), None)
    if len(kinds) > 1:
        raise ValueError(
            described(
                f"A tensor holds one kind of value, but {shortened(value)} mixes "
                f"{' and '.join(sorted(kinds))}.",
                fix="convert them to one kind, or pass them as separate parts of a tuple or dict.",
            )
        )
    return kinds.pop()


def _kind(kind: type, leaf: object) -> str:
    found = _kind_of_type(kind)
    if found is None:
        raise ValueError(
            described(
                f"{shortened(leaf)} of type {kind.__name__} cannot become a tensor.",
                fix=_instead_of(leaf),
            )
        )
    return found


def _instead_of(leaf: object) -> str:
    if isinstance(leaf, dict):
        return 'pass one dict of lists, {"a": [1, 2]}, instead of a list of dicts.'
    if type(leaf).__name__ in ("PerReplica", "Mirrored"):
        return "call strategy.reduce or strategy.gather, or take its parts: strategy.experimental_local_results(x)."
    if type(leaf).__name__ == "RaggedTensor":
        return "pass x.to_tensor(), or call the function with evenfeed.ragged.map_flat_values."
    if isinstance(leaf, Sized) and getattr(type(leaf), "__getitem__", None) is not None:
        return "read rows by number: evenfeed.data.Dataset.range(len(rows)).map(rows.__getitem__)."
    return "pass numbers, text, bytes, arrays, or nested lists of them."


@cache
def _kind_of_type(kind: type) -> str | None:
    if issubclass(kind, (str, bytes)):
        return "text"
    if issubclass(kind, (bool, np.bool_)):
        return "bool"
    if issubclass(kind, (int, np.integer)):
        return "int"
    if issubclass(kind, (complex, np.complexfloating)):
        return "complex"
    if issubclass(kind, (float, np.floating)) or kind in (dtypes.bfloat16.type,):
        return "float"
    return None


def _default_dtype(kind: str | None, leaves: list[Any]) -> DType:
    match kind:
        case "int":
            return _default_int(leaves)
        case "bool":
            return dtypes.bool
        case "complex":
            return dtypes.complex128
        case "text":
            return dtypes.string
        case _:
            return _default_float(leaves)


def _default_int(leaves: list[Any]) -> DType:
    low, high = min(leaves), max(leaves)
    if low >= -(2**31) and high < 2**31:
        return dtypes.int32
    if low >= -(2**63) and high < 2**63:
        return dtypes.int64
    outside = low if low < -(2**63) else high
    raise ValueError(
        described(
            f"{outside} does not fit into int64.",
            fix="pass dtype=evenfeed.uint64 or dtype=evenfeed.float64, if the value fits.",
        )
    )


def _default_float(leaves: list[Any]) -> DType:
    # In TensorFlow, the first value decides whether a list of NumPy floats keeps its dtype.
    if leaves and type(leaves[0]) in (np.float16, np.float64, dtypes.bfloat16.type):
        return np.asarray(leaves[0]).dtype
    wide = np.array(leaves, np.float64)
    with np.errstate(over="ignore"):
        lost = np.isinf(wide.astype(np.float32)) & np.isfinite(wide)
    if lost.any():
        raise ValueError(
            described(
                f"{wide[lost][0]} does not fit into float32, the default for Python floats.",
                fix="pass dtype=evenfeed.float64.",
            )
        )
    return dtypes.float32


def _may_become(kind: str, dtype: DType) -> bool:
    if dtype in _NARROW:
        return kind in ("bool", "int")
    return dtype.kind in _ALLOWED[kind]


def _check_fits(leaves: list[Any], dtype: DType) -> None:
    low, high = _limits(dtype)
    for leaf in (min(leaves), max(leaves)):
        if not low <= leaf <= high:
            raise InvalidArgumentError(
                f"{leaf} does not fit into {dtypes.name_of(dtype)}, which holds {low} to {high}.",
                fix="pass a wider dtype, or call evenfeed.cast if the value should wrap around.",
            )


def _limits(dtype: DType) -> tuple[int, int]:
    if dtype in _NARROW:
        return _NARROW[dtype]
    limits = np.iinfo(dtype)
    return int(limits.min), int(limits.max)


def cannot_hold(value: object, dtype: DType) -> TypeError:
    """Return the error for a value that `dtype` cannot hold."""
    return TypeError(
        described(
            f"{shortened(value)} cannot become a tensor of dtype {dtypes.name_of(dtype)}.",
            fix="pass another dtype, or convert the value with evenfeed.cast.",
        )
    )


def _not_rectangular(value: Any) -> ValueError:
    lengths = [len(part) if _is_sequence(part) else "-" for part in value]
    return ValueError(
        described(
            f"{shortened(value)} is not rectangular: its parts have lengths {shortened(lengths)}.",
            fix="pad the parts to one shape, or pass evenfeed.ragged.constant(values).",
        )
    )
