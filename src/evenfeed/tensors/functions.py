"""Calls plain Python from a function on tensors, and says what its results are."""

# ruff: noqa: ARG001 - `name` is TensorFlow's argument; there is no graph to show it in.

import functools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

import numpy as np

from evenfeed.core import dtypes, side_effects
from evenfeed.core.conversion import Array, is_tensor, to_array
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.shapes import ShapeLike, TensorShape
from evenfeed.core.tensor_types import host_tensor
from evenfeed.tensors.creation import DTypeLike, Tensor, convert_to_tensor, is_on_device, read


def numpy_function(
    func: Callable[..., Any] | None = None,
    inp: Sequence[object] | None = None,
    Tout: Any = None,  # noqa: N803 - TensorFlow's name
    stateful: bool = True,
    name: str | None = None,
) -> Any:
    """Call a Python function with NumPy values, and return what it returns as tensors.

    A map with this in it runs its elements one by one: the function needs their values. Without `func`
    and `inp` it is a decorator: `@tf.numpy_function(Tout=tf.float32)`.

    Args:
        func: Takes a NumPy array for each input, bytes where it is one text.
        inp: The inputs; an empty list for a function without arguments.
        Tout: The dtype of the result, or a list of the dtypes of several; an empty list for a
            function that returns nothing.
        stateful: Taken for compatibility.
        name: Taken for compatibility.

    Examples:
        >>> import numpy as np
        >>> import evenfeed as tf
        >>> tf.numpy_function(np.sinh, [np.float32(0)], tf.float32).tolist()
        0.0
    """
    return _called("numpy_function", func, inp, Tout, _argument)


def py_function(
    func: Callable[..., Any] | None = None,
    inp: Sequence[object] | None = None,
    Tout: Any = None,  # noqa: N803 - TensorFlow's name
    name: str | None = None,
) -> Any:
    """Call a Python function with the values of tensors, and return what it returns as tensors.

    As `numpy_function`, but `func` gets tensors: NumPy arrays that have `numpy()`, also of text.
    `@tf.py_function(Tout=tf.float32)` is a decorator.

    Examples:
        >>> import evenfeed as tf
        >>> tf.py_function(lambda x: x.numpy() + 1, [1.5], tf.float32).numpy()
        np.float32(2.5)
    """
    return _called("py_function", func, inp, Tout, lambda value: host_tensor(_read(value)))


def _called(
    name: str,
    func: Callable[..., Any] | None,
    inp: Sequence[object] | None,
    declared: Any,
    argument: Callable[[object], Any],
) -> Any:
    """Call the function with its inputs, or return the decorator that will."""
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
        return functools.partial(_decorated, name, declared=declared, argument=argument)
    if not callable(func):
        raise ValueError(described(f"{name} needs a function, but got {func!r}."))
    if inp is None:
        raise TypeError(
            described(
                f"{name} got a function, but no inputs for it.",
                fix="pass inp, the list of its inputs; [] for a function without arguments.",
            )
        )
    return _as_declared(_run(name, func, map(argument, inp)), declared)


def _run(name: str, func: Callable[..., Any], arguments: Iterable[Any]) -> Any:
    watcher = side_effects.here.watcher
    if watcher is not None:
        watcher.call(
            name
        )  # it is called once for each element, and never for a look at the map around it
    return func(*arguments)


def _decorated(
    name: str, func: Callable[..., Any], declared: Any, argument: Callable[[object], Any]
) -> Callable[..., Any]:
    @functools.wraps(func)
    def call(*inputs: object) -> Any:
        return _as_declared(_run(name, func, map(argument, inputs)), declared)

    return call


def ensure_shape(x: object, shape: ShapeLike, name: str | None = None) -> Tensor:
    """Return a tensor as it is; an error where it has another shape.

    Examples:
        >>> import evenfeed as tf
        >>> tf.ensure_shape([1, 2, 3], [None]).tolist()
        [1, 2, 3]
    """
    tensor: Any = x if is_tensor(x) else convert_to_tensor(x)
    asked, found = TensorShape(shape), tuple(tensor.shape)
    if not asked.is_compatible_with(found):
        raise InvalidArgumentError(
            f"A tensor of shape {found} is not compatible with the shape {asked}.",
            fix="pass None for each length that may vary.",
        )
    return tensor


def _argument(value: object) -> Any:
    array = _read(value)
    text = array.dtype == dtypes.string and array.ndim == 0
    return array.item() if text else array


def _read(value: object) -> Array:
    # Where JAX traces, it says here that the value is not known: the map then runs per element.
    return to_array(np.asarray(read(value)) if is_on_device(value) else value)


def _as_declared(value: Any, declared: Any) -> Any:
    if value is None:
        return _nothing(declared)
    several = isinstance(value, (list, tuple))
    values = list(cast("Sequence[Any]", value)) if several else [value]
    if not isinstance(declared, (list, tuple)):
        return _tensor(values[0] if len(values) == 1 else value, declared)
    kinds = list(cast("Sequence[DTypeLike]", declared))
    if len(values) != len(kinds):
        raise InvalidArgumentError(
            f"The function returned {len(values)} values, but Tout names {len(kinds)}.",
            fix="name one dtype for each value that it returns.",
        )
    return [_tensor(one, kind) for one, kind in zip(values, kinds, strict=True)]


def _nothing(declared: Any) -> list[Any]:
    if isinstance(declared, (list, tuple)) and not declared:
        return []
    raise InvalidArgumentError(
        "The function returned None, but Tout names what it returns.",
        fix="return a value, or pass Tout=[] for a function that returns nothing.",
    )


def _tensor(value: object, declared: DTypeLike) -> Array:
    asked = dtypes.as_dtype(declared)
    array = _read(value)
    if array.dtype == asked:
        return host_tensor(array)
    plain = not isinstance(value, (np.ndarray, np.generic)) and not is_on_device(value)
    if plain and dtypes.string not in (array.dtype, asked):  # Python's numbers take any dtype
        return host_tensor(array.astype(asked))
    raise InvalidArgumentError(
        f"The function returned {dtypes.name_of(array.dtype)}, but Tout says {dtypes.name_of(asked)}.",
        fix="convert the result, or name its dtype in Tout.",
    )
