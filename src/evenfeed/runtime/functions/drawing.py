"""Gives a random_map function its random source: a JAX key or a NumPy generator from the element's random bits."""

from collections.abc import Callable, Sequence
from typing import Any, Final, Literal, TypeAlias, final

import numpy as np
from numpy.random.bit_generator import ISeedSequence
from numpy.typing import NDArray

from evenfeed.core.errors import described
from evenfeed.core.randomness.random_bits import drawing_from
from evenfeed.runtime.functions.calls import bound
from evenfeed.runtime.functions.vectorise import typed_key

Source: TypeAlias = Literal["jax", "numpy"]

# Why a function with a NumPy Generator runs per element. The numbers may determine a shape, so even a trace
# for its output spec could be wrong.
NOT_TRACED: Final = "it draws from a NumPy Generator"


def drawing(function: Callable[..., Any], source: Source) -> Callable[..., Any]:
    """Wrap a user function: the wrapper takes random bits and an element, and passes it a key or generator made from the bits."""
    if source not in _CALLS:
        raise ValueError(
            described(
                f'generator must be "jax" or "numpy", but got {source!r}.',
                fix='"jax" passes the function a key for jax.random, "numpy" a numpy.random.Generator.',
            )
        )
    return bound(_CALLS[source], function)


def drawing_inside(function: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a user function: the wrapper takes random bits and an element. evenfeed's random functions draw from the bits."""
    return bound(_with_draws, function)


def generator_of(words: NDArray[np.uint32]) -> np.random.Generator:
    """Return a NumPy generator for two words: Philox with these words as its key."""
    key: Any = _UnmixedSeed(words)  # NumPy accepts it, but its type stubs do not
    return np.random.Generator(np.random.Philox(key))


@final
class _UnmixedSeed(ISeedSequence):
    """Passes the words to Philox unchanged, because mixing them again would take four times as long."""

    def __init__(self, words: NDArray[np.uint32]) -> None:
        self._words = words

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> Any:
        return self._words[:n_words].astype(dtype)


def _with_key(function: Callable[..., Any], words: Any, *parts: Any) -> Any:
    return _called(function, typed_key(words), parts)


def _with_draws(function: Callable[..., Any], words: Any, *parts: Any) -> Any:
    with drawing_from(words):
        return function(*parts)


def _with_generator(function: Callable[..., Any], words: Any, *parts: Any) -> Any:
    return _called(function, generator_of(words), parts)


def _called(function: Callable[..., Any], source: Any, parts: Sequence[Any]) -> Any:
    try:
        return function(source, *parts)
    except (AttributeError, TypeError) as error:  # in Grain, the element comes first
        error.add_note(
            "random_map passes the key or generator first, and then what map passes: function(key, element)."
        )
        raise


_CALLS: Final[dict[str, Callable[..., Any]]] = {"jax": _with_key, "numpy": _with_generator}
