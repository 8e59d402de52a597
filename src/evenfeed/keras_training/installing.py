"""Connects Keras with evenfeed: its models take datasets, and follow strategies."""

from functools import cache

from evenfeed.dataset import Dataset
from evenfeed.keras_training import keras_private
from evenfeed.keras_training.callbacks import MEMBERS
from evenfeed.keras_training.checkpointing import track_keras
from evenfeed.keras_training.choosing_adapters import chosen_adapter
from evenfeed.keras_training.distribution import follow_strategy, placed_array, placed_variable
from evenfeed.keras_training.models import MODEL_METHODS, TRAINER_METHODS
from evenfeed.keras_training.preprocessing import FUNCTIONS, LAYERS, assigning, leading_on
from evenfeed.strategy.followers import followers


@cache
def install() -> None:
    """Connect them, once."""
    keras_private.replace_adapter_choice(chosen_adapter)
    keras_private.replace_placing(placed_array)
    keras_private.replace_variable_placing(placed_variable)
    keras = keras_private.keras
    for name, replace in TRAINER_METHODS.items():
        keras_private.replace_member(keras_private.Trainer, name, replace)
    for name, replace in MODEL_METHODS.items():
        keras_private.replace_member(keras.Model, name, replace)
    for (kind, name), replace in MEMBERS.items():
        keras_private.replace_member(getattr(keras.callbacks, kind), name, replace)
    keras_private.replace_member(keras_private.JaxVariable, "_direct_assign", assigning)
    keras_private.accept_in_adapt((Dataset,))
    for name, instead in LAYERS.items():
        layer = getattr(keras.layers, name)
        keras_private.replace_member(layer, "__init__", leading_on(f"layers.{name}", instead))
    for name, instead in FUNCTIONS.items():
        replace = leading_on(f"utils.{name}", instead)
        keras_private.replace_member(keras.utils, name, replace)
    track_keras()
    followers.add(follow_strategy)
