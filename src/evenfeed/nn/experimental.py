"""Dropout with random numbers of your choice: TensorFlow's `tf.nn.experimental`."""

from typing import TYPE_CHECKING

from evenfeed.core.publish import publish, refusal
from evenfeed.tensors.nn.dropouts import general_dropout, stateless_dropout

__all__ = ["general_dropout", "stateless_dropout"]

publish(__name__, __all__, globals())

if not TYPE_CHECKING:
    __getattr__ = refusal(
        __name__, __all__, "The page of names in the docs lists what evenfeed provides."
    )
