"""Profiles that are asked for over the network: TensorFlow's `tf.profiler.experimental.server`."""

from typing import TYPE_CHECKING

from evenfeed.core.publish import publish, refusal
from evenfeed.tensors.control.profiling_server import start

__all__ = ["start"]

publish(__name__, __all__, globals())

if not TYPE_CHECKING:
    __getattr__ = refusal(
        __name__, __all__, "The page of names in the docs lists what evenfeed provides."
    )
