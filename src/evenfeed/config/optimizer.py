"""Compilation: TensorFlow's `tf.config.optimizer`."""

from typing import TYPE_CHECKING

from evenfeed.core.publish import publish, refusal
from evenfeed.strategy.execution_settings import get_jit, set_jit

__all__ = ["get_jit", "set_jit"]

publish(__name__, __all__, globals())

if not TYPE_CHECKING:
    __getattr__ = refusal(
        __name__, __all__, "The page of names in the docs lists what evenfeed provides."
    )
