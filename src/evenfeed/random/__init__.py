"""Random tensors and the global seed: TensorFlow's `tf.random`."""

from typing import TYPE_CHECKING

from evenfeed.core.publish import publish, refusal
from evenfeed.core.randomness.seeds import set_seed
from evenfeed.random import experimental
from evenfeed.replicas.generators import (
    Generator,
    create_rng_state,
    get_global_generator,
    set_global_generator,
)
from evenfeed.tensors.counted_distributions import (
    gamma,
    poisson,
    stateless_binomial,
    stateless_gamma,
    stateless_poisson,
)
from evenfeed.tensors.nn.candidates import (
    all_candidate_sampler,
    log_uniform_candidate_sampler,
    uniform_candidate_sampler,
)
from evenfeed.tensors.randomness import categorical, normal, shuffle, truncated_normal, uniform
from evenfeed.tensors.stateless_random import (
    Algorithm,
    fold_in,
    split,
    stateless_categorical,
    stateless_normal,
    stateless_truncated_normal,
    stateless_uniform,
)

__all__ = [
    "Algorithm",
    "Generator",
    "all_candidate_sampler",
    "categorical",
    "create_rng_state",
    "experimental",
    "fold_in",
    "gamma",
    "get_global_generator",
    "log_uniform_candidate_sampler",
    "normal",
    "poisson",
    "set_global_generator",
    "set_seed",
    "shuffle",
    "split",
    "stateless_binomial",
    "stateless_categorical",
    "stateless_gamma",
    "stateless_normal",
    "stateless_poisson",
    "stateless_truncated_normal",
    "stateless_uniform",
    "truncated_normal",
    "uniform",
    "uniform_candidate_sampler",
]

publish(__name__, __all__, globals())

if not TYPE_CHECKING:
    __getattr__ = refusal(
        __name__, __all__, "The page of names in the docs lists what evenfeed provides."
    )
