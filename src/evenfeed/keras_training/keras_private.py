"""What evenfeed uses of Keras beyond its public API, in one place. `tests/keras_training/test_keras_private.py` checks it.

Keras has no public way to add a kind of input data, to know the model that data is for, or to place a batch that cannot be
split evenly. It looks up the names below at each call, so they can be replaced.
"""

import functools
import importlib
import inspect
from collections.abc import Callable
from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, Final, cast

import numpy as np

from evenfeed.core.lazy_jax import jax

_files: Final[Any] = importlib.import_module("keras.src.utils.file_utils")
_modules: Final[Any] = importlib.import_module("keras.src.utils.module_utils")
_backend: Final[Any] = importlib.import_module("keras.src.backend")
dataset_utils: Final[Any] = importlib.import_module("keras.src.utils.dataset_utils")
_tensorflow_utils: Final[Any] = importlib.import_module("keras.src.utils.tf_utils")
_index_lookup: Final[Any] = importlib.import_module("keras.src.layers.preprocessing.index_lookup")
_feature_space: Final[Any] = importlib.import_module("keras.src.layers.preprocessing.feature_space")
_dtypes: Final[Any] = importlib.import_module("keras.src.backend.common.dtypes")
_trainer: Final[Any] = importlib.import_module("keras.src.backend.jax.trainer")
_image_datasets: Final[Any] = importlib.import_module("keras.src.utils.image_dataset_utils")
timeseries_utils: Final[Any] = importlib.import_module("keras.src.utils.timeseries_dataset_utils")
keras: Final[Any] = importlib.import_module("keras")
_adapters: Final[Any] = importlib.import_module("keras.src.trainers.data_adapters")
_utilities: Final[Any] = importlib.import_module(
    "keras.src.trainers.data_adapters.data_adapter_utils"
)
_arrays: Final[Any] = importlib.import_module("keras.src.trainers.data_adapters.array_data_adapter")
_placing: Final[Any] = importlib.import_module("keras.src.backend.jax.distribution_lib")
_settings: Final[Any] = importlib.import_module("keras.src.distribution.distribution_lib")
_randomness: Final[Any] = importlib.import_module("keras.src.utils.rng_utils")

DataAdapter: Final[Any] = importlib.import_module(
    "keras.src.trainers.data_adapters.data_adapter"
).DataAdapter
#: The class with the methods of all variables on JAX. `replicas/keras_variables` replaces methods of the same class:
#: one of a subclass would hide those.
JaxVariable: Final[Any] = importlib.import_module("keras.src.backend.jax.core").JaxVariable
#: The class that counts the steps of an epoch.
EpochIterator: Final[Any] = _trainer.JAXEpochIterator
#: The base class of all models on JAX. It has `fit`, `evaluate` and `predict`.
Trainer: Final[Any] = _trainer.JAXTrainer

#: The classes of Keras that have variables.
SAVED_CLASSES: Final[tuple[Any, ...]] = (
    keras.Variable,
    keras.metrics.Metric,
    keras.Layer,
    keras.optimizers.Optimizer,
)
#: The parts of the state of a step, by their number: of `predict_step`, `test_step` and `train_step`.
_PARTS_OF_STATE: Final = {
    2: ("trainable_variables", "non_trainable_variables"),
    3: ("trainable_variables", "non_trainable_variables", "metrics_variables"),
    4: (
        *("trainable_variables", "non_trainable_variables"),
        *("optimizer_variables", "metrics_variables"),
    ),
}
#: The attributes in which Keras keeps the variables and layers of a layer, beside the attributes that a user gave them.
_LISTS_OF_KERAS: Final = frozenset(
    {"_layers", "_operations", "_trainable_variables", "_non_trainable_variables"}
)

Distribution: Final[Any] = _settings.Distribution
DeviceMesh: Final[Any] = _settings.DeviceMesh
in_stateless_scope: Final[Callable[[], bool]] = _backend.in_stateless_scope
distribution: Final[Callable[[], Any]] = _settings.distribution
set_distribution: Final[Callable[[Any], None]] = _settings.set_distribution
random_seed: Final[Callable[[], int | None]] = _randomness.get_random_seed
set_random_seed: Final[Callable[[int], None]] = _randomness.set_random_seed
unpack_batch: Final[Callable[[Any], tuple[Any, Any, Any]]] = _utilities.unpack_x_y_sample_weight
are_arrays: Final[Callable[[Any], bool]] = _arrays.can_convert_arrays
refuse_argument: Final[Callable[[str, str, str], None]] = _adapters.raise_unsupported_arg


def layout_of(sharding: Any, device_mesh: Any) -> Any:
    """Return a JAX sharding as a layout of Keras, which has no words for an axis split over several of the mesh."""
    layout = _settings.TensorLayout((), device_mesh)
    layout._backend_layout = sharding  # where Keras keeps the sharding of a layout
    return layout


def sharding_in(layout: Any) -> Any:
    """Return the JAX sharding of a layout."""
    return layout.backend_layout if isinstance(layout, _settings.TensorLayout) else layout


def lay_out(variable: Any, chosen: Any) -> None:
    """Move a variable to where a distribution wants it."""
    variable._layout = None  # there is no public way to move a variable
    variable._layout = chosen.get_variable_layout(variable)
    variable.assign(variable.value)


def replace_adapter_choice(choose: Callable[[Callable[..., Any], dict[str, Any]], Any]) -> None:
    """Let `choose` pick the adapter of input data. It gets Keras's own function, and the arguments by name."""
    own: Any = _adapters.get_data_adapter
    signature = inspect.signature(own)

    @functools.wraps(own)
    def get_data_adapter(*args: Any, **kwargs: Any) -> Any:
        given = signature.bind(*args, **kwargs)
        given.apply_defaults()
        return choose(own, given.arguments)

    _adapters.get_data_adapter = get_data_adapter


def replace_placing(place: Callable[[Callable[..., Any], Any, Any, str], Any]) -> None:
    """Let `place` put one array of a batch on the devices. It gets Keras's own function and its arguments."""
    own: Any = _placing.distribute_data_input

    @functools.wraps(own)
    def distribute_data_input(per_process_batch: Any, layout: Any, batch_dim_name: str) -> Any:
        return place(own, per_process_batch, layout, batch_dim_name)

    _placing.distribute_data_input = distribute_data_input


def replace_variable_placing(place: Callable[[Callable[..., Any], Any, Any], Any]) -> None:
    """Let `place` put the value of a variable on its devices. It gets Keras's own function and its arguments."""
    own: Any = _placing.distribute_tensor

    @functools.wraps(own)
    def distribute_tensor(tensor: Any, layout: Any) -> Any:
        return place(own, tensor, layout)

    _placing.distribute_tensor = distribute_tensor


def replace_member(owner: Any, name: str, replace: Callable[[Any], Any]) -> None:
    """Replace a method or property of a class, or a function of a module, by `replace(member)`."""
    static = inspect.getattr_static(owner, name)
    own = static if isinstance(static, property) else getattr(owner, name)
    made = replace(own)
    if callable(own):
        functools.update_wrapper(made, own)
        made.__signature__ = inspect.signature(
            own
        )  # Keras reads it to save the arguments of layers
    setattr(owner, name, made)


def replace_tensorflow(names: Any, io: Any) -> None:
    """Give the functions that make datasets what they would import from TensorFlow and from tensorflow_io.

    Other modules of Keras still find that TensorFlow is not installed.
    """
    _modules.tensorflow = names  # imported inside of functions
    _feature_space.tf = names
    # Its layers stay on their backend, and the results are not converted: they may be parts of a traced element.
    _feature_space.backend_utils = SimpleNamespace(
        TFGraphScope=nullcontext, in_tf_graph=lambda: True
    )
    for name in ("audio", "image", "text", "timeseries"):
        module: Any = importlib.import_module(f"keras.src.utils.{name}_dataset_utils")
        module.tf, module.tfio = names, io


def replace_tensorflow_of_layers(
    names: Any,
    tensorflow_backend: Any,
    backend: Callable[[Any], Any],
    convert: Callable[..., Any],
    initializer: Callable[..., None],
) -> None:
    """Give the layers for text and categories what they would import from TensorFlow.

    Args:
        names: What they find in `tf`.
        tensorflow_backend: What they find in Keras's TensorFlow backend.
        backend: Returns what they find in place of Keras's backend.
        convert: Converts their results.
        initializer: Makes what fills the table of a layer without a vocabulary.
    """
    _backend.tensorflow = tensorflow_backend
    _tensorflow_utils.tf = names
    for name in ("discretization", "normalization"):
        module: Any = importlib.import_module(f"keras.src.layers.preprocessing.{name}")
        module.tf = names
    hosted = ("hashed_crossing", "hashing", "index_lookup", "integer_lookup", "string_lookup")
    for name in (*hosted, "text_vectorization"):
        module = importlib.import_module(f"keras.src.layers.preprocessing.{name}")
        module.tf, module.backend = names, backend(_backend)
        module.backend_utils = SimpleNamespace(convert_tf_tensor=convert)
    _index_lookup.get_null_initializer = initializer


def allow_text(
    convert: Callable[..., Any],
    reshape: Callable[..., Any],
    distribute: Callable[..., Any],
    accept: Callable[..., Any],
    specify: Callable[..., Any],
) -> None:
    """Let arrays of text reach layers.

    Args:
        convert: Makes the function that makes tensors, of Keras's own.
        reshape: Makes the functions that insert and remove axes.
        distribute: Makes the function that puts a batch on the devices.
        accept: Makes the function that recognizes tensors.
        specify: Makes the function that computes the specs of results.
    """
    _dtypes.PYTHON_DTYPES_MAP[np.dtype(object)] = "string"
    made = convert(_backend.convert_to_tensor)
    for owner in (_backend, _backend.core):
        replace_member(owner, "convert_to_tensor", lambda _: made)
    for name in ("expand_dims", "squeeze"):
        replace_member(_backend.numpy, name, reshape)
    replace_member(_backend, "is_tensor", accept)
    replace_member(_backend, "compute_output_spec", specify)
    replace_member(_trainer, "_distribute_data", distribute)


def placed_batch(batch: Any) -> Any:
    """Return a batch on the devices of Keras's distribution, if there is one."""
    return batch if distribution() is None else _trainer._distribute_data(batch)


def hand_back(model: Any, state: tuple[list[Any], ...]) -> None:
    """Give a model the arrays that a step takes, after an error: Keras has taken them from its variables."""
    if any(array.is_deleted() for array in jax.tree.leaves(state)):
        model._jax_state = None  # the program itself failed, and nothing is left to give
        return
    model._jax_state = dict(zip(_PARTS_OF_STATE[len(state)], state, strict=True))
    model._jax_state_synced = False
    give_state(model)


def give_state(model: Any) -> None:
    """Give a model the arrays of the last execution, if its variables do not have them."""
    model.jax_state_sync()
    model._jax_state = None


def layers_of(model: Any) -> list[Any]:
    """Return all layers of a model, also those in others."""
    return list(model._flatten_layers())


def return_tensors_from_resizing(as_tensor: Callable[[Any], Any]) -> None:
    """Convert what `smart_resize` returns to datasets of images: to NumPy, a host tensor is an array."""
    own = _image_datasets.image_utils.smart_resize

    def smart_resize(
        x: Any, size: Any, interpolation: str, *, data_format: str, backend_module: Any
    ) -> Any:
        options = {"data_format": data_format, "backend_module": backend_module}
        return as_tensor(own(x, size, interpolation, **options))

    _image_datasets.image_utils = SimpleNamespace(smart_resize=smart_resize)


def parts_of_layer(layer: Any) -> tuple[list[Any], list[Any], list[Any]]:
    """Return the variables of a layer itself, the states of its seeds, and the layers in it."""
    variables: list[Any] = [*layer._trainable_variables, *layer._non_trainable_variables]
    seeds: list[Any] = [generator.state for generator in layer._seed_generators]
    return variables, seeds, layer._flatten_layers(include_self=False, recursive=False)


def attributes_of_layer(layer: Any) -> dict[str, Any]:
    """Return the attributes of a layer, without the lists in which Keras itself keeps what is in a layer."""
    attributes = cast("dict[str, Any]", vars(layer))
    return {name: value for name, value in attributes.items() if name not in _LISTS_OF_KERAS}


def await_build(part: Any, then: Callable[[], None]) -> None:
    """Call `then` when a layer or an optimizer has created its variables."""
    own = part.build

    @functools.wraps(own)
    def build(*args: Any, **kwargs: Any) -> Any:
        part.build = own
        result = own(*args, **kwargs)
        then()
        return result

    part.build = build


def own_dtype(variable: Any) -> str:
    """Return the dtype that a variable has outside of autocast scopes."""
    return str(variable._dtype)


def sharding_of(variable: Any) -> Any:
    """Return where a variable is, if it is on several devices; else None."""
    value = variable._value  # `value` computes one for a variable that has none yet
    return None if value is None or value.sharding.num_devices == 1 else value.sharding


def restart_from(variable: Any, value: Any) -> None:
    """Make a value the initial one of a variable, also while a function is traced or Keras only computes shapes."""

    def initial(shape: Any, dtype: Any) -> Any:
        del shape, dtype  # those of the variable, which the value has
        return value

    if variable._value is None:
        variable._initializer = initial
        return
    with jax.ensure_compile_time_eval():
        variable._value = (
            None  # a variable without a value is not assigned by the program that is traced
        )
        variable._direct_assign(variable._convert_to_tensor(value, dtype=variable.dtype))


def note_result(checkpoint: Any, epoch: int, batch: int | None, logs: Any) -> None:
    """Let a `ModelCheckpoint` note the result of an epoch, and save nothing."""
    path = checkpoint._get_file_path(epoch, batch, logs)
    checkpoint._should_save_model(epoch, batch, logs, path)


def has_backup(callback: Any) -> bool:
    """Return True if a `BackupAndRestore` would restore a model."""
    return _files.exists(callback._weights_path)
