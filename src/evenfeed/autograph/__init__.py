"""Hints for AutoGraph, which change nothing: TensorFlow's `tf.autograph`."""

from typing import TYPE_CHECKING

from evenfeed.autograph import experimental
from evenfeed.core.publish import publish, refusal
from evenfeed.tensors.control.autograph_hints import set_verbosity, trace

__all__ = ["experimental", "set_verbosity", "trace"]

publish(__name__, __all__, globals())

if not TYPE_CHECKING:
    __getattr__ = refusal(
        __name__, __all__, "The page of names in the docs lists what evenfeed provides."
    )
