"""The one lazy door to JAX: the modules below are loaded when something of theirs is first used.

`import evenfeed` and a process that only reads data must not pay for JAX (about a second and a
runtime full of threads). import-linter allows this module to the few places that compute.

Whoever computes first starts JAX's backend, which cannot be started anew. So the line that did is noted.
"""

import sys
from typing import TYPE_CHECKING, Any, Final, final

import numpy as np

from evenfeed.core.callsite import Origin, where_called
from evenfeed.core.doors import Door

__all__ = [
    "backend",
    "checkify",
    "jax",
    "jax_ad",
    "jax_batching",
    "jax_extend_core",
    "jax_mlir",
    "jax_tree",
    "jnp",
]


@final
class _Backend:
    """What is known of the start of JAX's backend.

    Attributes:
        started_by: The line that started it; None before, and where it had started before JAX was watched.
    """

    def __init__(self) -> None:
        self.started_by: Origin | None = None
        self._is_watched = False

    def watch(self) -> None:
        """Be told when the backend starts, if JAX is loaded."""
        bridge: Any = sys.modules.get("jax._src.xla_bridge")
        if bridge is None or self._is_watched:
            return
        self._is_watched = True
        if not bridge.backends_are_initialized():
            bridge.register_backend_initialization_hook(self._starting)

    def _starting(self, client: object) -> None:
        del client
        self.started_by = self.started_by or where_called()


backend: Final = _Backend()
backend.watch()  # a program may import JAX first


class _JaxDoor(Door):
    """A module of JAX's, whose arrays get TensorFlow's `numpy()` and `read_value()`.

    Scripts written for TensorFlow say `loss.numpy()` and `x.numpy()`; a class of tensors of our own
    would cost every other use of them. The copies of a variable are arrays, which scripts read like variables.
    """

    def __getattr__(self, name: str) -> Any:
        value = super().__getattr__(name)
        arrays: Any = sys.modules["jax"].Array
        if not hasattr(arrays, "numpy"):
            arrays.numpy = _numpy
            arrays.read_value = _read_value
            backend.watch()
        return value


def _numpy(self: Any) -> Any:
    """Return the values as a NumPy array; of a single value the scalar."""
    return np.asarray(self)[()]


def _read_value(self: Any) -> Any:
    """Return the array: it is what a replica's copy of a variable holds."""
    return self


if TYPE_CHECKING:
    import jax
    import jax.extend.core as jax_extend_core
    import jax.interpreters.ad as jax_ad
    import jax.interpreters.batching as jax_batching
    import jax.interpreters.mlir as jax_mlir
    import jax.numpy as jnp
    import jax.tree_util as jax_tree
    from jax.experimental import checkify
else:
    jax = _JaxDoor("jax")
    jax_extend_core = _JaxDoor("jax.extend.core")
    jax_ad = _JaxDoor("jax.interpreters.ad")
    jax_batching = _JaxDoor("jax.interpreters.batching")
    jax_mlir = _JaxDoor("jax.interpreters.mlir")
    jnp = _JaxDoor("jax.numpy")
    jax_tree = _JaxDoor("jax.tree_util")
    checkify = _JaxDoor("jax.experimental.checkify")
