"""Loads Keras on its JAX backend, and finds the names that TensorFlow shows as `tf.keras`."""

import importlib
import os
import sys
from types import ModuleType
from typing import Any, Final

from evenfeed.core.errors import described

_SETTING: Final = "KERAS_BACKEND"
_BACKEND: Final = "jax"
# What TensorFlow shows as tf.keras. It has names that plain `keras` lacks, such as losses.Reduction.
_FACE: Final = "keras._tf_keras.keras"


def keras_on_jax() -> Any:
    """Import Keras on JAX, and return it with TensorFlow's names.

    Raises:
        ImportError: Keras is not installed, or runs on another backend.
    """
    if "keras" not in sys.modules:
        _check_backend(os.environ.setdefault(_SETTING, _BACKEND), "the environment asks for")
    try:
        face = importlib.import_module(_FACE)
    except ImportError as error:
        raise ImportError(
            described(
                f"evenfeed.keras needs Keras 3, which cannot be imported: {error}.",
                fix="pip install 'evenfeed[keras]'.",
            )
        ) from error
    _check_backend(face.config.backend(), "it was imported on")
    importlib.import_module("evenfeed.keras_training.installing").install()
    return face


def _check_backend(backend: str, how: str) -> None:
    if backend != _BACKEND:
        raise ImportError(
            described(
                f"evenfeed.keras is Keras on JAX, but {how} the backend {backend!r}.",
                fix=f'os.environ["{_SETTING}"] = "{_BACKEND}" before the first import of Keras.',
            )
        )


def public_modules() -> dict[str, ModuleType]:
    """Return the public modules of Keras by their names within Keras, those of TensorFlow's face first."""
    found = dict[str, ModuleType]()
    for home in ("keras", _FACE):  # the face replaces what it has too
        for name, module in list(sys.modules.items()):
            inner = name.removeprefix(f"{home}.")
            if inner != name and inner.partition(".")[0] not in ("src", "_tf_keras"):
                found[inner] = module
    return found
