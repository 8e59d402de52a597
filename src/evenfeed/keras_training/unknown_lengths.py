"""Specs of layers that compute with the lengths of their inputs, as `tf.shape(x)[0]` does.

Keras on JAX traces a layer with a symbol for the lengths that are not known. What needs a number, such as a vector of lengths,
cannot be traced so. Then it is traced with two numbers instead: what differs between them is not known.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Final

from evenfeed.core.errors import described
from evenfeed.core.lazy_jax import jax
from evenfeed.keras_training import keras_private

# Layers divide them by 2 several times. A result of an unknown length has another one for each of them.
_LENGTHS: Final = (96, 192)
# How errors name a symbol: its class in JAX, and its own name in Keras.
_SYMBOLS: Final = ("_DimExpr", "dynamic_dimension")


def measuring(own: Callable[..., Any]) -> Callable[..., Any]:
    """Let Keras compute specs of functions that need the lengths of their arguments as numbers."""
    keras = keras_private.keras

    def compute_output_spec(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        try:
            return own(fn, *args, **kwargs)
        except Exception as error:
            if not _is_of_symbol(error) or not any(
                map(_is_open, keras.tree.flatten((args, kwargs)))
            ):
                raise
        found = [own(fn, *_filled(args, n), **_filled(kwargs, n)) for n in _LENGTHS]
        return keras.tree.map_structure(_common, *found)

    return compute_output_spec


def _is_of_symbol(error: Exception) -> bool:
    """Return True for what is raised where a symbol, or a tensor made of it, is no number.

    JAX has no public names for its own error and for the class of symbols. Python and NumPy name the class in a TypeError.
    """
    if type(error).__name__ == "InconclusiveDimensionOperation":
        return True
    errors = jax.errors
    of_tracers = (
        errors.ConcretizationTypeError,
        errors.TracerArrayConversionError,
        errors.TracerIntegerConversionError,
    )
    is_named = isinstance(error, TypeError) and any(name in str(error) for name in _SYMBOLS)
    return is_named or isinstance(error, of_tracers)


def _is_open(value: Any) -> bool:
    return isinstance(value, keras_private.keras.KerasTensor) and None in value.shape


def _filled(values: Any, length: int) -> Any:
    """Return arguments with a number for each unknown length."""
    return keras_private.keras.tree.map_structure(partial(_with, length=length), values)


def _with(value: Any, *, length: int) -> Any:
    if not _is_open(value):
        return value
    shape = [length if known is None else known for known in value.shape]
    return keras_private.keras.KerasTensor(shape, value.dtype, value.sparse, value.ragged)


def _common(first: Any, second: Any) -> Any:
    """Return a spec with the lengths that two have in common; the others are unknown."""
    if not isinstance(first, keras_private.keras.KerasTensor) or first.shape == second.shape:
        return first
    if len(first.shape) != len(second.shape):
        raise ValueError(
            described(
                "A layer returns tensors of different ranks for inputs of different lengths: "
                f"{len(first.shape)} for {_LENGTHS[0]}, {len(second.shape)} for {_LENGTHS[1]}.",
                fix="return the same rank for all lengths, or give the Input a fixed shape.",
            )
        )
    pairs = zip(first.shape, second.shape, strict=True)
    shape = [one if one == other else None for one, other in pairs]
    return keras_private.keras.KerasTensor(shape, first.dtype, first.sparse, first.ragged)
