"""Clusters and examples: TensorFlow's `tf.train`. Empty until clusters and files arrive."""

from typing import TYPE_CHECKING

from evenfeed.core.publish import refusal

__all__: list[str] = []

if not TYPE_CHECKING:
    __getattr__ = refusal(__name__, __all__, "The README lists what exists now.")
