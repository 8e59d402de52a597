"""Keras 3 on its JAX backend, with the names that `tf.keras` has in TensorFlow. Needs `evenfeed[keras]`.

Importing this module loads Keras. Its names are Keras's own: `evenfeed.keras.layers.Dense` is `keras.layers.Dense`.
"""

import sys
from typing import Any

from evenfeed.keras_training.loading import keras_on_jax, public_modules

_face: Any = keras_on_jax()

__all__ = [  # pyright: ignore[reportUnsupportedDunderAll] - what Keras has
    name for name in dir(_face) if not name.startswith("_")
]

# `from evenfeed.keras.layers import Dense` imports a module of that name.
for _name, _module in public_modules().items():
    sys.modules.setdefault(f"{__name__}.{_name}", _module)


def __getattr__(name: str) -> Any:
    return getattr(_face, name)


def __dir__() -> list[str]:
    return sorted(__all__)
