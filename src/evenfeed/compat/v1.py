"""TensorFlow 1's names: `tf.compat.v1`. What its programs share with TensorFlow 2 is here already."""

from typing import TYPE_CHECKING

from evenfeed import errors, nest
from evenfeed.core.publish import refusal
from evenfeed.core.shapes import TensorShape
from evenfeed.core.specs import TensorSpec

__all__ = ["TensorShape", "TensorSpec", "errors", "nest"]

if not TYPE_CHECKING:
    __getattr__ = refusal(__name__, __all__, "The README lists what exists now.")
