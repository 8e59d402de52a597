"""`evenfeed.random`: random tensors, repeatable where a seed is set."""

from evenfeed.core.publish import publish
from evenfeed.core.seeds import set_seed
from evenfeed.tensors.randomness import normal, uniform

__all__ = ["normal", "set_seed", "uniform"]

publish(__name__, __all__, globals())
