"""`evenfeed.keras` is Keras on JAX with TensorFlow's names."""

import importlib
import sys
from typing import Any

import pytest

import evenfeed as tf
from evenfeed.keras_training.loading import keras_on_jax

_ = tf.keras  # chooses the backend before Keras is imported
keras: Any = importlib.import_module("keras")


def test_the_names_are_those_of_keras() -> None:
    assert tf.keras.layers.Dense is keras.layers.Dense
    assert tf.keras.Model is keras.Model
    assert "Sequential" in dir(tf.keras)


def test_names_that_tensorflow_adds_to_keras_are_there() -> None:
    assert tf.keras.losses.Reduction.NONE == "none"
    assert callable(tf.keras.backend.set_value)


def test_modules_can_be_imported_by_their_paths() -> None:
    assert importlib.import_module("evenfeed.keras.layers") is tf.keras.layers
    schedules = importlib.import_module("evenfeed.keras.optimizers.schedules")
    assert schedules.ExponentialDecay is keras.optimizers.schedules.ExponentialDecay


@pytest.mark.parametrize("name", ["initializers", "losses", "metrics", "optimizers"])
def test_the_package_has_the_namespaces_that_tensorflow_takes_from_keras(name: str) -> None:
    assert getattr(tf, name) is getattr(tf.keras, name)


def test_a_missing_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError):
        _ = tf.keras.no_such_name


def test_keras_that_is_loaded_on_another_backend_says_what_to_set(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(keras.config, "backend", lambda: "torch")
    with pytest.raises(ImportError, match=r"(?s)on the backend 'torch'.*KERAS_BACKEND.*= .jax."):
        keras_on_jax()


def test_a_setting_for_another_backend_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded: dict[str, Any] = {n: m for n, m in sys.modules.items() if n.split(".")[0] == "keras"}
    for name in loaded:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setenv("KERAS_BACKEND", "tensorflow")
    with pytest.raises(ImportError, match=r"(?s)asks for the backend 'tensorflow'.*KERAS_BACKEND"):
        keras_on_jax()
    assert "keras" not in sys.modules
