"""`evenfeed.keras` is Keras on JAX with TensorFlow's names."""

import importlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import evenfeed as tf
from evenfeed.keras_training.loading import choose_backend, keras_on_jax

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


@pytest.mark.slow
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_program_that_imports_keras_itself_trains_on_datasets(when: str, tmp_path: Path) -> None:
    environ = {k: v for k, v in os.environ.items() if k != "KERAS_BACKEND"}
    program = Path(__file__).parent / "programs" / "import_keras.py"
    done = subprocess.run(
        [sys.executable, str(program), when],
        capture_output=True,
        text=True,
        timeout=110,
        check=False,
        env={**environ, "KERAS_HOME": str(tmp_path)},
    )
    assert done.stdout == "jax 2\n", done.stderr


@pytest.mark.parametrize(
    ("chosen", "settings", "expected"),
    [
        (None, None, "jax"),
        (None, '{"backend": "tensorflow"}', "jax"),  # the file that Keras writes
        (None, '{"backend": "torch"}', None),
        (None, "damaged", "jax"),
        ("torch", None, "torch"),
    ],
)
def test_keras_runs_on_jax_unless_something_else_is_chosen(
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    chosen: str | None,
    settings: str | None,
    expected: str | None,
) -> None:
    monkeypatch.setenv("KERAS_BACKEND", chosen or "")
    monkeypatch.setenv("KERAS_HOME", str(tmp_path))
    if chosen is None:
        monkeypatch.delenv("KERAS_BACKEND")
    if settings is not None:
        (tmp_path / "keras.json").write_text(settings)
    choose_backend()
    assert os.environ.get("KERAS_BACKEND") == expected
