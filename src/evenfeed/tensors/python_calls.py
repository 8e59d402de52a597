"""`numpy_function`, `py_function` and `ensure_shape`: Python code in a function on tensors."""

# ruff: noqa: ARG001 - `name` is TensorFlow's argument; there is no graph to show it in.

import functools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast, final

import numpy as np

from evenfeed.core import dtypes, promised_shapes, side_effects
from evenfeed.core.batchable_specs import BatchableSpec
from evenfeed.core.block import as_array
from evenfeed.core.captures import live
from evenfeed.core.conversion import Array, is_tensor, shortened, to_array
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.gradients.followed_values import followed
from evenfeed.core.handles import Handle
from evenfeed.core.promised_shapes import promise, promise_of
from evenfeed.core.promotion import PromotingTensor, computed_tensor
from evenfeed.core.shapes import ShapeLike, TensorShape
from evenfeed.core.specs import Specified
from evenfeed.core.tensor_types import HostTensor, HostText, TextTensor
from evenfeed.core.traced import traced_rows
from evenfeed.tensors.creation import DTypeLike, Tensor, convert_to_tensor, is_on_device, read
from evenfeed.tensors.device_arrays import is_traced


def numpy_function(
    func: Callable[..., Any] | None = None,
    inp: Sequence[object] | None = None,
    Tout: Any = None,  # noqa: N803 - TensorFlow's name
    stateful: bool = True,
    name: str | None = None,
) -> Any:
    """Call a Python function with NumPy values, and return its results as tensors.

    A map that uses this runs one element at a time, because the function needs concrete values. Without `func`
    and `inp` it is a decorator: `@tf.numpy_function(Tout=tf.float32)`.

    Args:
        func: Called with a NumPy array per input; a scalar is a NumPy scalar, a scalar text is bytes.
        inp: The inputs; an empty list for a function without arguments.
        Tout: The dtype of the result, or a list of dtypes for several results; an empty list for a
            function that returns nothing.
        stateful: Accepted for compatibility.
        name: Accepted for compatibility.

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> tf.numpy_function(np.sinh, [np.float32(0)], tf.float32).tolist()
        0.0
    """
    return _called(_NUMPY, func, inp, Tout)


def py_function(
    func: Callable[..., Any] | None = None,
    inp: Sequence[object] | None = None,
    Tout: Any = None,  # noqa: N803 - TensorFlow's name
    name: str | None = None,
) -> Any:
    """Call a Python function with concrete tensors, and return its results as tensors.

    Like `numpy_function`, but `func` receives tensors: NumPy arrays with `numpy()`, also for text. Arrays that
    it returns are cast to Tout by NumPy's rules; those of `numpy_function` must already have that dtype. A
    RaggedTensorSpec or SparseTensorSpec in Tout declares a ragged or sparse result. A tape records what the
    function computes.
    `@tf.py_function(Tout=tf.float32)` is a decorator.

    Examples:
        >>> import evenfeed as tf
        >>> tf.py_function(lambda x: x.numpy() + 1, [1.5], tf.float32).numpy()
        np.float32(2.5)
    """
    return _called(_PYTHON, func, inp, Tout)


@final
@dataclass(frozen=True)
class _Kind:
    """The kind of Python call: `numpy_function` or `py_function`.

    Attributes:
        name: TensorFlow's name.
        argument: Converts an input to the argument of the function.
        casts: Whether returned arrays are cast to the declared dtype.
    """

    name: str
    argument: Callable[[object], Any]
    casts: bool


def _called(
    kind: _Kind,
    func: Callable[..., Any] | None,
    inp: Sequence[object] | None,
    declared: Any,
) -> Any:
    """Call the function with its inputs, or return a decorator."""
    name = kind.name
    if declared is None:
        raise TypeError(
            described(
                f"{name} needs Tout, the dtype of the result.",
                fix=f"write {name}(func, inp, Tout=…), with Tout=[] for a function that returns nothing.",
            )
        )
    if func is None:
        if inp is not None:
            raise TypeError(
                described(
                    f"{name} got inp, but no function to call with it.",
                    fix=f"pass the function first, or write @{name}(Tout=…) above it.",
                )
            )
        return functools.partial(_decorated, kind, declared=declared)
    if not callable(func):
        raise ValueError(described(f"{name} needs a function, but got {func!r}."))
    if inp is None:
        raise TypeError(
            described(
                f"{name} got a function, but no inputs for it.",
                fix="pass inp=[...], the list of its inputs; inp=[] for a function without arguments.",
            )
        )
    return _run(kind, live(func), inp, declared)


def _run(kind: _Kind, func: Callable[..., Any], inputs: Iterable[object], declared: Any) -> Any:
    watcher = side_effects.here.watcher
    if watcher is not None and watcher.declares:
        return _stand_ins(declared)
    if watcher is not None:
        # The function is called once per element, never to probe the map around it.
        watcher.call(kind.name)
    return _as_declared(func(*map(kind.argument, inputs)), declared, kind)


def _decorated(kind: _Kind, func: Callable[..., Any], declared: Any) -> Callable[..., Any]:
    @functools.wraps(func)
    def call(*inputs: object) -> Any:
        return _run(kind, live(func), inputs, declared)

    return call


def ensure_shape(x: object, shape: ShapeLike, name: str | None = None) -> Tensor:
    """Return the tensor unchanged. Raises InvalidArgumentError if its shape does not match.

    Examples:
        >>> import evenfeed as tf
        >>> tf.ensure_shape([1, 2, 3], [None]).tolist()
        [1, 2, 3]
    """
    if isinstance(x, Handle) and (made := traced_rows.ensured(x, shape)) is not None:
        return made
    tensor: Any = x if is_tensor(x) else convert_to_tensor(x)
    asked, found = TensorShape(shape), tuple(tensor.shape)
    if not asked.is_compatible_with(found):
        if promised_shapes.here.stand_ins:
            asked = promise_of(tensor).sure.merge_with(asked)
            stand_in = _zeros(asked, tensor.dtype)
            promise(stand_in, asked)
            return stand_in
        raise InvalidArgumentError(
            f"A tensor of shape {found} is not compatible with the shape {asked}.",
            fix="pass None for each length that may vary.",
        )
    promise(tensor, shape)
    return tensor


def _stand_ins(declared: Any) -> Any:
    """Return zeros in place of the declared results, whose shapes are unknown."""
    if not isinstance(declared, (list, tuple)):
        return _stand_in(declared)
    return list(map(_stand_in, cast("Sequence[Any]", declared)))


def _stand_in(declared: Any) -> Any:
    if isinstance(declared, BatchableSpec):
        return declared.stand_in(1)
    return _zeros(TensorShape([]), dtypes.as_dtype(declared))


def _zeros(shape: TensorShape, dtype: DType) -> Array:
    lengths = [1 if length is None else length for length in shape or ()]
    return computed_tensor(np.full(lengths, b"" if dtype == dtypes.string else 0, dtype))


def _argument(value: Any) -> Any:
    kind: type[Any] = value.__class__
    if kind is HostText:
        return bytes(value)
    # Numeric tensors of the host, as a map passes them, in a third of the time.
    array = value.view(np.ndarray) if kind in _HOST_TENSORS else _read(value)
    # A NumPy scalar, because a 0-d array cannot be a dict key or multiply a list.
    return array if array.ndim else array[()]


def _read(value: object) -> Array:
    # In a trace, JAX raises here because the value is not known; the map then runs per element.
    return to_array(np.asarray(read(value)) if is_on_device(value) else value)


_HOST_TENSORS: Final[frozenset[type]] = frozenset({HostTensor, PromotingTensor})
_NUMBERS: Final = frozenset(map(np.dtype, "?bBhHiIlLefd"))
_SCALARS: Final[dict[object, type]] = {dtype: dtype.type for dtype in _NUMBERS}

_SEQUENCES: Final[tuple[type, ...]] = (list, tuple)
_ARRAYS: Final = frozenset({np.ndarray, *_HOST_TENSORS})
# Numbers below this are finite in every float dtype.
_SAFE: Final = 60_000

_NUMPY: Final = _Kind("numpy_function", _argument, casts=False)


def _tensor_argument(value: object) -> Any:
    """Return a tensor of the host; what a tape follows stays as it is, so that the function has a gradient."""
    array = followed(value)
    if array is None and type(value) in _HOST_TENSORS:  # as a map passes them
        return cast("Array", value).view(PromotingTensor)
    return computed_tensor(_read(value)) if array is None or is_traced(array) else array


_PYTHON: Final = _Kind("py_function", _tensor_argument, casts=True)


def _as_declared(value: Any, declared: Any, kind: _Kind) -> Any:
    if value is None:
        return _nothing(declared)
    several, is_one = isinstance(value, _SEQUENCES), not isinstance(declared, _SEQUENCES)
    if is_one and not several:
        return _tensor(value, declared, kind)
    values: Sequence[Any] = value if several else [value]
    if is_one:
        return _tensor(values[0] if len(values) == 1 else value, declared, kind)
    named = cast("Sequence[DTypeLike]", declared)
    if len(values) != len(named):
        raise InvalidArgumentError(
            f"The function returned {len(values)} values, but Tout lists {len(named)}.",
            fix="list one dtype for each value that it returns.",
        )
    return [_tensor(one, dtype, kind) for one, dtype in zip(values, named, strict=True)]


def _nothing(declared: Any) -> list[Any]:
    if isinstance(declared, (list, tuple)) and not declared:
        return []
    raise InvalidArgumentError(
        "The function returned None, but Tout declares a result.",
        fix="return a value, or pass Tout=[] for a function that returns nothing.",
    )


def _tensor(value: object, declared: Any, kind: _Kind) -> Any:
    if isinstance(declared, BatchableSpec):
        return _composite(value, declared, kind)
    if type(value) is _SCALARS.get(declared):
        return np.asarray(value).view(PromotingTensor)
    asked = dtypes.as_dtype(declared)
    ready = _ready(value, asked)
    if ready is not None:
        return ready
    if not is_tensor(value) and not is_on_device(value):  # a Python value is converted if possible
        try:
            return computed_tensor(to_array(value, asked))
        except (TypeError, ValueError) as error:
            raise _unlike(shortened(value), asked) from error
    kept = followed(value)
    if kept is not None and kind.casts and asked.kind in "fcV":
        return kept.astype(asked)
    array = _read(value)
    if array.dtype == asked:
        return computed_tensor(array)
    if not kind.casts or dtypes.string in (array.dtype, asked) or not _fits(array, asked):
        raise _unlike(dtypes.name_of(array.dtype), asked)
    with np.errstate(over="ignore", invalid="ignore"):  # overflow is infinity, as in TensorFlow
        return computed_tensor(array.astype(asked))


def _composite(value: Any, declared: BatchableSpec, kind: _Kind) -> Any:
    """Return a ragged or sparse result, which only `py_function` can have."""
    if not kind.casts:
        raise ValueError(
            described(
                f"{kind.name} returns arrays, but Tout says {declared}.", fix="call py_function."
            )
        )
    if isinstance(value, Specified) and declared.is_compatible_with(value):
        return value
    raise InvalidArgumentError(
        f"The function returned {shortened(value)}, but Tout says {declared}.",
        fix="return a value with that spec.",
    )


def _ready(value: Any, asked: DType) -> Any:
    """Return a value as a tensor if that needs no rules of TensorFlow, in a fraction of the time; else None."""
    kind: type[Any] = value.__class__
    if kind in _ARRAYS:
        is_ready = value.dtype == asked and asked in _NUMBERS and followed(value) is None
        return value.view(PromotingTensor) if is_ready else None
    if asked in _NUMBERS:
        return _ready_number(value, kind, asked)
    if asked == dtypes.string and (kind is bytes or (kind is str and value.isascii())):
        return as_array(value if kind is bytes else value.encode()).view(TextTensor)
    return None


def _ready_number(value: Any, kind: type, asked: DType) -> Any:
    is_whole = kind is int and asked.kind in "iu"
    is_fraction = (kind is int or kind is float) and asked.kind == "f" and abs(value) < _SAFE
    if not (is_whole or is_fraction):
        return None
    try:
        return np.array(value, asked).view(PromotingTensor)
    except OverflowError:  # the other way says what fits
        return None


def _fits(array: Array, asked: DType) -> bool:
    """Return True unless an integer would overflow; TensorFlow would let it wrap around."""
    if array.dtype.kind not in "iu" or asked.kind not in "iu" or not array.size:
        return True
    limits = np.iinfo(asked)
    return limits.min <= int(array.min()) and int(array.max()) <= limits.max


def _unlike(found: str, asked: DType) -> InvalidArgumentError:
    return InvalidArgumentError(
        f"The function returned {found}, but Tout says {dtypes.name_of(asked)}.",
        fix="convert the result, or pass its dtype as Tout.",
    )
