"""The version: TensorFlow's `tf.version`."""

from typing import TYPE_CHECKING, Final

from evenfeed.core.publish import refusal

#: The version of evenfeed, not of TensorFlow.
VERSION: Final = "0.1.0.dev0"

__all__ = ["VERSION"]

if not TYPE_CHECKING:
    __getattr__ = refusal(
        __name__, __all__, "The page of names in the docs lists what evenfeed provides."
    )
