"""Text as input of models whose first layers turn it into numbers.

JAX has no text. It stays on the host, as tensors of text, and Keras does not compile such a model.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final

import numpy as np

from evenfeed.core.conversion import to_array
from evenfeed.core.structure import DATA, flatten, map_structure
from evenfeed.core.tensor_types import HostTensor, HostText, TextTensor, host_tensor
from evenfeed.keras_training import keras_private
from evenfeed.keras_training.host_layers import IN_HOST_LAYER, LAYERS
from evenfeed.keras_training.unknown_lengths import measuring

#: Whether the model that trains or predicts now takes text.
TAKES_TEXT: Final[ContextVar[bool]] = ContextVar("TAKES_TEXT", default=False)


def is_text(value: Any) -> bool:
    """Return True for an array of text."""
    if not isinstance(value, (np.ndarray, HostText)):
        return False
    held: Any = value  # pyright: ignore[reportUnknownVariableType] - an array of any dtype
    return held.dtype.kind in "OSU"


def as_text(value: Any) -> Any:
    """Return an array of text as a tensor, and anything else unchanged."""
    return host_tensor(to_array(value)) if is_text(value) else value


def converting(own: Callable[..., Any]) -> Callable[..., Any]:
    """Let Keras's conversion to tensors leave text on the host."""

    def convert_to_tensor(x: Any, dtype: Any = None, sparse: Any = None, ragged: Any = None) -> Any:
        return as_text(x) if is_text(x) else own(x, dtype, sparse, ragged)

    return convert_to_tensor


def reshaping(own: Callable[..., Any]) -> Callable[..., Any]:
    """Let Keras insert and remove axes of text, as models do to fit their input."""
    on_host = getattr(np, own.__name__)

    def reshape(x: Any, axis: Any = None) -> Any:
        return host_tensor(on_host(x, axis)) if is_text(x) else own(x, axis)

    return reshape


def distributing(own: Callable[..., Any]) -> Callable[..., Any]:
    """Leave a batch with text where it is."""

    def distribute(data: Any, layouts: Any = None) -> Any:
        return data if any(map(is_text, flatten(data, DATA))) else own(data, layouts)

    return distribute


def accepting(own: Callable[[Any], bool]) -> Callable[[Any], bool]:
    """Let Keras take text for a tensor, and inside of a layer that works on the host every host tensor."""

    def is_tensor(x: Any) -> bool:
        return isinstance(x, HostTensor if IN_HOST_LAYER.get() else TextTensor) or own(x)

    return is_tensor


def specifying(own: Callable[..., Any]) -> Callable[..., Any]:
    """Let Keras compute specs of functions of text: texts of one word, in the same shape, are constants in the trace."""
    keras = keras_private.keras

    def compute_output_spec(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        parts: list[Any] = [_sample(part) for part in keras.tree.flatten((args, kwargs))]
        if not any(map(is_text, parts)):
            return own(fn, *args, **kwargs)
        places = [place for place, part in enumerate(parts) if _is_symbolic(part)]

        def call(*symbolic: Any) -> Any:
            given = list(parts)
            for place, part in zip(places, symbolic, strict=True):
                given[place] = part
            all_args, all_kwargs = keras.tree.pack_sequence_as((args, kwargs), given)
            return fn(*all_args, **all_kwargs)

        return own(call, *(parts[place] for place in places))

    return compute_output_spec


def _is_symbolic(part: Any) -> bool:
    return isinstance(part, keras_private.keras.KerasTensor)


def _sample(part: Any) -> Any:
    if _is_symbolic(part) and part.dtype == "string":
        shape = [1 if length is None else length for length in part.shape]
        # One word, so that sequences of words are not empty: recurrent layers take their first element.
        return host_tensor(np.full(shape, b"0", object))
    return part


@contextmanager
def text_of(model: Any) -> Generator[None]:
    """Let the data of a model hold text if one of its layers takes text."""
    layers = keras_private.keras.layers
    kinds = tuple(getattr(layers, name) for name in LAYERS)
    token = TAKES_TEXT.set(
        any(isinstance(layer, kinds) for layer in keras_private.layers_of(model))
    )
    try:
        yield
    finally:
        TAKES_TEXT.reset(token)


def with_text(arrays: Any) -> Any:
    """Return arrays with those of text as tensors."""
    return map_structure(as_text, arrays, rules=DATA)


def install_text_inputs() -> None:
    """Let models take text."""
    keras_private.allow_text(converting, reshaping, distributing, accepting, _specifying_all)


def _specifying_all(own: Callable[..., Any]) -> Callable[..., Any]:
    return specifying(measuring(own))
