"""Tells whether the program uses Keras on JAX. It loads nothing of Keras, and nothing of evenfeed until Keras is there."""

import importlib
import sys
from typing import Final

_LOADED: Final = "keras.src.backend.jax.core"
_CONNECTING: Final = "evenfeed.replicas.keras_variables.connecting"


def is_connected() -> bool:
    """Connect Keras with compiled functions, if the program has loaded it on JAX. Return True if so."""
    return _LOADED in sys.modules and importlib.import_module(_CONNECTING).connect()
