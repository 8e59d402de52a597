"""The one lazy door to JAX: the modules below are loaded when something of theirs is first used.

`import evenfeed` and a process that only reads data must not pay for JAX (about a second and a
runtime full of threads). import-linter allows this module to the few places that compute.

Whoever computes first starts JAX's backend, which cannot be started anew. So the line that did is noted.
"""

import importlib.util
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final, NoReturn, final

import numpy as np

from evenfeed.core.callsite import Origin, where_called
from evenfeed.core.doors import Door
from evenfeed.core.list_operands import let_arrays_meet_lists
from evenfeed.core.promised_shapes import promise_checked
from evenfeed.core.shapes import ArrayShape

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
    "refuse_as_argument",
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
        bridge: Any = sys.modules.get(_BRIDGE)
        if bridge is None or self._is_watched:
            return
        self._is_watched = True
        if not bridge.backends_are_initialized():
            bridge.register_backend_initialization_hook(self._starting)

    def _starting(self, client: object) -> None:
        del client
        self.started_by = self.started_by or where_called()


backend: Final = _Backend()
_BRIDGE: Final = "jax._src.xla_bridge"  # the module that starts backends


@final
class _Watcher:
    """Finds no module, but watches for the backend when the program imports JAX after evenfeed."""

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> Any:
        """Let the other finders find the module, and be there when it has been loaded."""
        del path, target
        if name != _BRIDGE:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return None
        load = spec.loader.exec_module

        def loaded(module: Any) -> None:
            load(module)
            backend.watch()

        spec.loader.exec_module = loaded
        return spec


if _BRIDGE in sys.modules:
    backend.watch()
else:
    sys.meta_path.insert(0, _Watcher())


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
            arrays.set_shape = sys.modules["jax"].core.Tracer.set_shape = promise_checked
            let_arrays_meet_lists()
            _open_shapes(sys.modules["jax"].tree_util)
        return value


def refuse_as_argument(kind: type, refuse: Callable[[Any], NoReturn]) -> None:
    """Let `refuse` raise where a function of JAX's is called with an object of this class.

    JAX's own words for it speak of `__jax_array__` and abstractification. The table is private to JAX:
    where a version has none, its words stay (tests/replicas/test_variables.py).
    """
    table: Any = getattr(sys.modules.get("jax._src.core"), "pytype_aval_mappings", None)
    if table is not None:
        table[kind] = refuse


def _open_shapes(tree_util: Any) -> None:
    """Let the shapes of elements be to JAX what plain tuples are: trees of lengths."""
    tree_util.register_pytree_node(ArrayShape, _lengths, _tuple_of)


def _lengths(shape: ArrayShape) -> tuple[tuple[int, ...], None]:
    return tuple(shape), None


def _tuple_of(_: None, lengths: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(lengths)


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
