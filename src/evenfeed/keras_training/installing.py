"""Connects Keras with evenfeed: its models take datasets, and follow strategies."""

from functools import cache

from evenfeed.keras_training import keras_private
from evenfeed.keras_training.choosing_adapters import chosen_adapter
from evenfeed.keras_training.distribution import follow_strategy, placed_array
from evenfeed.keras_training.models import METHODS
from evenfeed.strategy.followers import followers


@cache
def install() -> None:
    """Connect them, once."""
    keras_private.replace_adapter_choice(chosen_adapter)
    keras_private.replace_placing(placed_array)
    for name, wrap in METHODS.items():
        keras_private.wrap_method(name, wrap)
    followers.add(follow_strategy)
