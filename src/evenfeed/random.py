"""Random tensors and the global seed: TensorFlow's `tf.random`."""

from evenfeed.core.publish import publish
from evenfeed.core.seeds import set_seed
from evenfeed.tensors.randomness import normal, uniform

__all__ = ["normal", "set_seed", "uniform"]

publish(__name__, __all__, globals())
