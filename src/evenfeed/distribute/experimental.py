"""The experimental names of `tf.distribute`."""

from typing import TYPE_CHECKING

from evenfeed.core.publish import publish, refusal
from evenfeed.strategy.strategy import ValueContext

__all__ = ["ValueContext"]

publish(__name__, __all__, globals())

if not TYPE_CHECKING:
    __getattr__ = refusal(__name__, __all__, "The README lists what exists now.")
