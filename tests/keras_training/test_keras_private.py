"""Keras still has what evenfeed uses of it beyond its public API. These tests fail if a new version changes that."""

import ast
import importlib
import inspect
import re
from typing import Any

import pytest

import evenfeed as tf

_ = tf.keras  # loads Keras on JAX
keras_private: Any = importlib.import_module("evenfeed.keras_training.keras_private")
adapter_module: Any = importlib.import_module("evenfeed.keras_training.dataset_adapter")


def parameters(function: Any) -> list[str]:
    return list(inspect.signature(function).parameters)


def test_keras_asks_the_replaced_function_for_an_adapter() -> None:
    iterators: Any = importlib.import_module("keras.src.backend.jax.trainer")
    made = iterators.JAXEpochIterator(x=tf.data.Dataset.range(4).batch(2))
    assert isinstance(made.data_adapter, adapter_module.DatasetAdapter)
    assert made.num_batches == 2


def test_the_choice_of_an_adapter_has_the_arguments_that_evenfeed_reads() -> None:
    adapters: Any = importlib.import_module("keras.src.trainers.data_adapters")
    own = inspect.unwrap(adapters.get_data_adapter)
    assert parameters(own) == [
        *("x", "y", "sample_weight", "batch_size", "steps_per_epoch", "shuffle", "class_weight")
    ]


def test_one_function_places_the_arrays_of_a_batch() -> None:
    placing: Any = importlib.import_module("keras.src.backend.jax.distribution_lib")
    assert placing.distribute_data_input.__wrapped__ is not None
    assert parameters(placing.distribute_data_input) == [
        *("per_process_batch", "layout", "batch_dim_name")
    ]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("__init__", ["self"]),
        ("predict", ["self", "x", "batch_size", "verbose", "steps", "callbacks"]),
        ("_symbolic_build", ["self", "iterator", "data_batch"]),
        ("make_predict_function", ["self", "force"]),
        ("_make_function", ["self", "step_function", "concatenate_outputs"]),
    ],
)
def test_methods_of_models_have_the_arguments_that_evenfeed_passes(
    name: str, arguments: list[str]
) -> None:
    assert parameters(getattr(keras_private.Trainer, name)) == arguments


def test_models_build_themselves_from_the_iterator_of_an_epoch() -> None:
    source = inspect.getsource(inspect.unwrap(keras_private.Trainer.fit))
    assert "self._symbolic_build(iterator=epoch_iterator)" in source


def test_a_pass_over_batches_begins_with_one_method() -> None:
    epochs: Any = keras_private.EpochIterator
    assert parameters(epochs._get_iterator) == ["self"]
    assert "self._get_iterator()" in inspect.getsource(epochs._enumerate_iterator)
    source = inspect.getsource(inspect.unwrap(epochs._get_iterator))
    assert "self._get_distributed_iterator(distribution)" in source
    assert "_distribute_data(data, layouts)" in inspect.getsource(epochs._get_distributed_iterator)


def test_models_take_their_state_back_by_the_names_of_its_parts() -> None:
    source = inspect.getsource(inspect.unwrap(keras_private.Trainer.jax_state_sync))
    read = set(re.findall(r'_jax_state\.get\(\s*"(\w+)"', source))
    assert read == set(keras_private._PARTS_OF_STATE[4])
    assert "self._jax_state_synced = True" in source


def test_a_layout_keeps_the_sharding_that_it_was_given() -> None:
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    with strategy.scope():
        layout = tf.keras.distribution.distribution().get_data_layout((4, 2))
        variable = tf.keras.Variable([1.0, 2.0])
    assert layout.backend_layout == strategy.sharding("replica")
    assert variable.value.sharding == strategy.sharding()


def names_used(module: Any, of: str) -> set[str]:
    """Return what a module uses of the names of another, as `a.b` for nested ones."""
    tree = ast.parse(inspect.getsource(module))
    found = {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    own = {name.removeprefix(f"{of}.") for name in found if name.startswith(f"{of}.")}
    return {name for name in own if "(" not in name}


def has(namespace: Any, path: str) -> bool:
    for name in path.split("."):
        if isinstance(namespace, type):
            return True  # what follows is a member of a class
        namespace = getattr(namespace, name, None)
    return namespace is not None


@pytest.mark.parametrize(
    "name",
    [
        *("discretization", "hashed_crossing", "hashing", "index_lookup", "integer_lookup"),
        *("normalization", "string_lookup", "text_vectorization", "feature_space"),
    ],
)
def test_layers_find_all_names_of_tensorflow_that_they_use(name: str) -> None:
    module: Any = importlib.import_module(f"keras.src.layers.preprocessing.{name}")
    missing = [used for used in names_used(module, "tf") if not has(module.tf, used)]
    assert not missing
    backend: Any = importlib.import_module("keras.src.backend")
    used = names_used(module, "tf_backend")
    assert not [each for each in used if not has(backend.tensorflow, each)]


@pytest.mark.parametrize("name", ["audio", "image", "text"])
def test_functions_that_make_datasets_find_all_names_of_tensorflow(name: str) -> None:
    module: Any = importlib.import_module(f"keras.src.utils.{name}_dataset_utils")
    assert not [used for used in names_used(module, "tf") if not has(module.tf, used)]
