"""The names of TensorFlow's `tf.experimental` that input pipelines use, and those of the live view."""

from typing import TYPE_CHECKING

from evenfeed.core.optional import Optional
from evenfeed.core.publish import publish, refusal
from evenfeed.live.watching import enable_stats

__all__ = ["Optional", "enable_stats"]

publish(__name__, __all__, globals())

if not TYPE_CHECKING:
    __getattr__ = refusal(
        __name__, __all__, "The page of names in the docs lists what evenfeed provides."
    )
