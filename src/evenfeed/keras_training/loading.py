"""Loads Keras on its JAX backend, and finds the names that TensorFlow shows as `tf.keras`."""

import importlib
import json
import os
import sys
from importlib.util import find_spec
from types import ModuleType
from typing import Any, Final

from evenfeed.core.errors import described
from evenfeed.core.lazy import when_imported

_SETTING: Final = "KERAS_BACKEND"
_BACKEND: Final = "jax"
_DEFAULT: Final = "tensorflow"
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


def choose_backend() -> None:
    """Let Keras run on JAX if nothing else is chosen: without TensorFlow, its default does not start.

    Called before the program imports Keras itself.
    """
    if _SETTING not in os.environ and find_spec("tensorflow") is None and _is_default():
        os.environ[_SETTING] = _BACKEND


def _is_default() -> bool:
    """Return True unless Keras's own file of settings chooses another backend than TensorFlow."""
    folder = os.environ.get("KERAS_HOME") or os.path.join(os.path.expanduser("~"), ".keras")
    try:
        with open(os.path.join(folder, "keras.json"), encoding="utf-8") as file:
            return json.load(file).get("backend", _DEFAULT) == _DEFAULT
    except (OSError, ValueError, AttributeError):
        return True


def connect() -> None:
    """Connect Keras with evenfeed, if the program has imported it on JAX."""
    backend: Any = getattr(getattr(sys.modules["keras"], "config", None), "backend", None)
    if backend is not None and backend() == _BACKEND:
        importlib.import_module("evenfeed.keras_training.installing").install()


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


# Programs import Keras beside evenfeed: its models take datasets and follow strategies, too.
when_imported("keras", connect, choose_backend)
