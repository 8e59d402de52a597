"""TensorFlow's `tf.experimental`, as far as input pipelines need it."""

from typing import TYPE_CHECKING

from evenfeed.core.optional import Optional
from evenfeed.core.publish import publish, refusal

__all__ = ["Optional"]

publish(__name__, __all__, globals())

if not TYPE_CHECKING:
    __getattr__ = refusal(__name__, __all__, "The README lists what exists now.")
