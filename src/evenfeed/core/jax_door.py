"""The one lazy door to JAX: the modules below are loaded when something of theirs is first used.

`import evenfeed` and a process that only reads data must not pay for JAX (about a second and a
runtime full of threads). import-linter allows this module to the few places that compute.
"""

import importlib
from types import ModuleType
from typing import TYPE_CHECKING, Any

__all__ = ["jax", "jnp"]


class _Door(ModuleType):
    """A module that is imported at its first attribute."""

    def __getattr__(self, name: str) -> Any:
        value = getattr(importlib.import_module(self.__name__), name)
        if callable(value):  # functions stay what they are; settings may change
            self.__dict__[name] = value
        return value


if TYPE_CHECKING:
    import jax
    import jax.numpy as jnp
else:
    jax = _Door("jax")
    jnp = _Door("jax.numpy")
