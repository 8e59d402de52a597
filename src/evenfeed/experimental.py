"""TensorFlow's `tf.experimental`, as far as input pipelines need it."""

from evenfeed.core.optional import Optional
from evenfeed.core.publish import publish

__all__ = ["Optional"]

publish(__name__, __all__, globals())
