"""Older and rarer names of random functions: TensorFlow's `tf.random.experimental`."""

from typing import TYPE_CHECKING

from evenfeed.core.publish import publish, refusal
from evenfeed.replicas.generators import (
    Generator,
    create_rng_state,
    get_global_generator,
    set_global_generator,
)
from evenfeed.tensors.stateless_random import Algorithm, stateless_shuffle
from evenfeed.tensors.stateless_random import fold_in as stateless_fold_in
from evenfeed.tensors.stateless_random import split as stateless_split

__all__ = [
    "Algorithm",
    "Generator",
    "create_rng_state",
    "get_global_generator",
    "set_global_generator",
    "stateless_fold_in",
    "stateless_shuffle",
    "stateless_split",
]

publish(__name__, __all__, globals())

if not TYPE_CHECKING:
    __getattr__ = refusal(
        __name__, __all__, "The page of names in the docs lists what evenfeed provides."
    )
