"""Layers that prepare data, in `Dataset.map` and `adapt`, and what to use instead of those that need TensorFlow."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, Final

from evenfeed.core import side_effects
from evenfeed.core.errors import described
from evenfeed.core.side_effects import ProbeAbandoned
from evenfeed.tensors.device_arrays import is_traced


def assigning(own: Callable[..., Any]) -> Callable[..., Any]:
    """Report an assignment to the dataset whose function makes it, such as a random layer that draws.

    A value of a trace must not stay in the variable, so the function runs per element.
    """

    def assign(self: Any, value: Any) -> None:
        watcher = side_effects.here.watcher
        if watcher is not None:
            watcher.traps(SimpleNamespace(name=self.path, made_under=None))
            if is_traced(value):
                raise ProbeAbandoned(f"assigns the variable {self.path!r}")
        own(self, value)

    return assign


_TEXT: Final = "evenfeed.strings and evenfeed.lookup in dataset.map"

#: What to use instead of layers that need TensorFlow.
LAYERS: Final = {
    "TextVectorization": _TEXT,
    "StringLookup": _TEXT,
    "IntegerLookup": "evenfeed.lookup.StaticHashTable in dataset.map",
    "Hashing": "evenfeed.strings.to_hash_bucket_fast in dataset.map",
    "HashedCrossing": "evenfeed.strings.to_hash_bucket_fast in dataset.map",
}


def leading_on(name: str, instead: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a function that adds to an ImportError of Keras what to use instead."""

    def replaced(own: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return own(*args, **kwargs)
            except ImportError as error:
                raise ImportError(
                    described(f"{name} of Keras needs TensorFlow.", fix=f"use {instead}.")
                ) from error

        return call

    return replaced
