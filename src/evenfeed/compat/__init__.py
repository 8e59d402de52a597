"""Names of older TensorFlow versions."""

from evenfeed.compat import v1

__all__ = ["v1"]
