"""Functions of neural networks: TensorFlow's `tf.nn`."""

from typing import TYPE_CHECKING

from evenfeed.core.publish import publish, refusal
from evenfeed.tensors.math.reductions import zero_fraction
from evenfeed.tensors.math.single_values import sigmoid, softplus, softsign
from evenfeed.tensors.math.trigonometry import tanh

__all__ = ["sigmoid", "softplus", "softsign", "tanh", "zero_fraction"]

publish(__name__, __all__, globals())

if not TYPE_CHECKING:
    __getattr__ = refusal(
        __name__, __all__, "The page of names in the docs lists what evenfeed provides."
    )
