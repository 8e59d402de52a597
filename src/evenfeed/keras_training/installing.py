"""Connects Keras with evenfeed: its models take datasets, and follow strategies."""

from functools import cache

from evenfeed.core.tensor_types import host_tensor
from evenfeed.keras_training import keras_private
from evenfeed.keras_training.callbacks import MEMBERS
from evenfeed.keras_training.checkpointing import track_keras
from evenfeed.keras_training.choosing_adapters import chosen_adapter
from evenfeed.keras_training.distribution import follow_strategy, placed_array, placed_variable
from evenfeed.keras_training.host_layers import install_host_layers
from evenfeed.keras_training.making_datasets import FUNCTIONS, TENSORFLOW, NoTensorFlowIO
from evenfeed.keras_training.models import MODEL_METHODS, TRAINER_METHODS
from evenfeed.keras_training.preprocessing import assigning
from evenfeed.keras_training.stateful_steps import STEP_METHODS
from evenfeed.keras_training.steps_per_execution import making_loops, reading_runs
from evenfeed.keras_training.text_inputs import install_text_inputs
from evenfeed.replicas.keras_variables.loaded_keras import is_connected
from evenfeed.strategy.followers import followers


@cache
def install() -> None:
    """Connect them, once."""
    is_connected()  # variables and optimizers, also for programs without tapes
    keras_private.replace_adapter_choice(chosen_adapter)
    keras_private.replace_placing(placed_array)
    keras_private.replace_variable_placing(placed_variable)
    keras = keras_private.keras
    for name, replace in (*TRAINER_METHODS.items(), *STEP_METHODS.items()):
        keras_private.replace_member(keras_private.Trainer, name, replace)
    keras_private.replace_member(keras_private.Trainer, "_make_function", making_loops)
    keras_private.replace_member(keras_private.EpochIterator, "_get_iterator", reading_runs)
    for name, replace in MODEL_METHODS.items():
        keras_private.replace_member(keras.Model, name, replace)
    for (kind, name), replace in MEMBERS.items():
        keras_private.replace_member(getattr(keras.callbacks, kind), name, replace)
    keras_private.replace_member(keras_private.JaxVariable, "_direct_assign", assigning)
    keras_private.replace_tensorflow(TENSORFLOW, NoTensorFlowIO())
    keras_private.return_tensors_from_resizing(host_tensor)
    for (module, name), function in FUNCTIONS.items():
        keras_private.replace_member(
            getattr(keras_private, module), name, lambda _, new=function: new
        )
    install_host_layers()
    install_text_inputs()
    track_keras()
    followers.add(follow_strategy)
