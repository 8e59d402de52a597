"""Hints for functions and loops: TensorFlow's `tf.autograph.experimental`."""

from typing import TYPE_CHECKING

from evenfeed.core.publish import publish, refusal
from evenfeed.tensors.control.autograph_hints import do_not_convert, set_loop_options

__all__ = ["do_not_convert", "set_loop_options"]

publish(__name__, __all__, globals())

if not TYPE_CHECKING:
    __getattr__ = refusal(
        __name__, __all__, "The page of names in the docs lists what evenfeed provides."
    )
