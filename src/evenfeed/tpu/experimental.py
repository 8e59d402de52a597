"""The calls that prepare TPUs: TensorFlow's `tf.tpu.experimental`."""

from typing import TYPE_CHECKING

from evenfeed.core.publish import publish, refusal
from evenfeed.strategy.tpu_strategy import initialize_tpu_system, shutdown_tpu_system

__all__ = ["initialize_tpu_system", "shutdown_tpu_system"]

publish(__name__, __all__, globals())

if not TYPE_CHECKING:
    __getattr__ = refusal(
        __name__, __all__, "The page of names in the docs lists what evenfeed provides."
    )
