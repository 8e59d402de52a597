"""JAX as lazily imported modules, and what evenfeed adds to JAX's arrays.

Once JAX is loaded, its arrays get TensorFlow's `numpy()`, `read_value()`, `get_shape()`, `set_shape()` and `ref()`, those that were
read from a variable with a key get `assign`, all accept lists in arithmetic, as TensorFlow's tensors do:
`x - [0.5, 0.4, 0.3]`, and `x[5]` raises if there is no row 5. The module also records which line started JAX's
backend.
"""

import functools
import importlib
import os
import sys
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast, final

import numpy as np

from evenfeed.core import promised_shapes
from evenfeed.core.callsite import Origin, calling_package, where_called
from evenfeed.core.concurrency.forked_jax import fork
from evenfeed.core.errors import check_divisor
from evenfeed.core.floor_division import dividing_jax_arrays
from evenfeed.core.lazy import LazyModule, random, when_imported
from evenfeed.core.names.missing_members import graph_members
from evenfeed.core.names.references import reference_to
from evenfeed.core.promised_shapes import promise_checked, promise_result
from evenfeed.core.promotion import array_of_list
from evenfeed.core.shapes import ArrayShape, TensorShape
from evenfeed.core.side_effects import here
from evenfeed.core.sparse.variable_slices import assigning
from evenfeed.core.traced.known_indices import check_key

_EITHER_WAY: Final = [
    "add",
    "sub",
    "mul",
    "truediv",
    "floordiv",
    "mod",
    "pow",
    "matmul",
    "and",
    "or",
    "xor",
]
_COMPARISONS: Final = ["eq", "ne", "lt", "le", "gt", "ge"]
_KEYS_OF_INTEGERS: Final = (int, tuple, np.int32, np.int64)


def let_arrays_meet_lists() -> None:
    """Let JAX arrays accept lists in arithmetic. A list gets the dtype that a Python number would get.

    Also raise if integers are divided by a 0 that is known, or an index that is known is out of bounds; JAX returns
    some number, or another row. And let `//` of floats be TensorFlow's.

    JAX rejects lists because they are slow, so a function with a short list of constants could not be traced. In a
    version of JAX with other classes, lists stay rejected.
    """
    operators = [*_EITHER_WAY, *(f"r{name}" for name in _EITHER_WAY), *_COMPARISONS]
    for module, kind in (("jax._src.core", "Tracer"), ("jax._src.array", "ArrayImpl")):
        arrays: Any = getattr(sys.modules.get(module), kind, None)
        for name in operators:
            own = getattr(arrays, f"__{name}__", None)
            if own is not None:
                own = _checking_divisors(own) if name in ("floordiv", "mod") else own
                if name in ("floordiv", "rfloordiv"):
                    own = dividing_jax_arrays(own, is_reflected=name == "rfloordiv")
                setattr(arrays, f"__{name}__", _taking_lists(own))
        if arrays is not None:
            arrays.__getitem__ = _checking_indices(arrays.__getitem__)


def _checking_indices(own: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    @functools.wraps(own)
    def operator(self: Any, key: Any) -> Any:
        if type(key) in _KEYS_OF_INTEGERS or getattr(key, "shape", None) == ():
            check_key(key, self.shape)
        return own(self, key)

    return operator


def _checking_divisors(own: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    @functools.wraps(own)
    def operator(self: Any, other: Any) -> Any:
        check_divisor(self, other)
        return own(self, other)

    return operator


def _taking_lists(own: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    @functools.wraps(own)
    def operator(self: Any, other: Any) -> Any:
        if type(other) is list or type(other) is tuple:
            other = array_of_list(cast("Sequence[Any]", other), self.dtype)
        found = own(self, other)
        if promised_shapes.here.promised:
            promise_result(found, (self, other))
        return found

    return operator


__all__ = [
    "backend",
    "checkify",
    "jax",
    "jax_ad",
    "jax_batching",
    "jax_extend_core",
    "jax_linalg",
    "jax_mlir",
    "jax_special",
    "jax_tree",
    "jnp",
    "refuse_as_argument",
]


@final
class _Backend:
    """Records the line that started JAX's backend.

    Attributes:
        started_by: The line that started it; None if it has not started, or started before the watch began.
    """

    def __init__(self) -> None:
        self.started_by: Origin | None = None
        self._is_watched = False

    def watch(self) -> None:
        """Register a hook for the start of the backend, if JAX is loaded."""
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


when_imported(_BRIDGE, backend.watch)


class _LazyJaxModule(LazyModule):
    """A lazy JAX module. Its first use adds TensorFlow's `numpy()` and `read_value()` to JAX arrays.

    Scripts written for TensorFlow call `loss.numpy()`; a tensor class of our own would slow down every other use.
    The copies of a variable are arrays, and scripts call `read_value()` on them as on variables.
    """

    def __getattr__(self, name: str) -> Any:
        if "jax" not in sys.modules:
            _import_jax()
        value = super().__getattr__(name)
        arrays: Any = sys.modules["jax"].Array
        if not hasattr(arrays, "numpy"):
            arrays.numpy = _numpy
            arrays.read_value = _read_value
            arrays.set_shape = sys.modules["jax"].core.Tracer.set_shape = promise_checked
            arrays.get_shape = sys.modules["jax"].core.Tracer.get_shape = _get_shape
            arrays.ref = sys.modules["jax"].core.Tracer.ref = reference_to
            for method in ("assign", "assign_add", "assign_sub"):
                for kind in (arrays, sys.modules["jax"].core.Tracer):
                    setattr(kind, method, assigning(method))
            for graph_member, refusing in graph_members().items():
                setattr(arrays, graph_member, refusing)
            sys.modules["jax"].core.Tracer.__str__ = _text_of_tracer
            let_arrays_meet_lists()
            _register_shapes(sys.modules["jax"].tree_util)
        if name == "config":  # one object, whose attributes are the settings
            self.__dict__[name] = value
        return value


class _JaxInFork(_LazyJaxModule):
    """A lazy JAX module in a fork: functions may be traced, but what would run raises."""

    def __getattribute__(self, name: str) -> Any:
        if name.startswith("_"):  # as __dict__, which the search for an attribute reads
            return super().__getattribute__(name)
        if (name in _RUNNING or self.__name__ != "jax") and _runs_at_once():
            value = getattr(sys.modules[self.__name__], name)
            if _is_computation(name, value):
                fork.refuse()
        return super().__getattribute__(name)


_RUNNING: Final = {"device_put", "devices", "local_devices", "make_array_from_callback"}
_OF_TYPES: Final = {"dtype", "issubdtype", "promote_types", "result_type", "iinfo", "finfo"}


def _runs_at_once() -> bool:
    """Return True if no function is being traced. A version of JAX that does not tell is left to its own errors."""
    told: Any = getattr(sys.modules.get("jax._src.core"), "trace_state_clean", None)
    return told is not None and told()


def _is_computation(name: str, value: object) -> bool:
    return callable(value) and not isinstance(value, type) and name not in _OF_TYPES


def _after_fork() -> None:
    modules: Any = (jax, jnp, jax_linalg, jax_special)
    if fork.of is not None:
        for module in modules:
            module.__class__ = _JaxInFork  # costs nothing in processes that are not forks


os.register_at_fork(after_in_child=_after_fork)  # runs after the one of `fork`


def _text_of_tracer(tracer: Any) -> str:
    """Return the text of a value that is not known yet, unless the text must be that of the value.

    The errors of JAX, and evenfeed's own, show the tracer.
    """
    if here.watcher is not None and calling_package() not in ("jax", "evenfeed"):
        here.watcher.show()
    return repr(tracer)


def _import_jax() -> None:
    """Import JAX without a trace in the global random generators, from which its import draws.

    A program that has set its seeds draws the same numbers with and without JAX, and a function that uses JAX first
    is not mistaken for one that draws.
    """
    states = random.getstate(), np.random.get_state(legacy=False)
    importlib.import_module("jax")
    random.setstate(states[0])
    np.random.set_state(states[1])


def refuse_as_argument(kind: type, refuse: Callable[[Any], NoReturn]) -> None:
    """Call `refuse`, which raises, when a JAX function gets an object of this class as an argument.

    JAX's own message is about `__jax_array__` and abstractification. The table is private to JAX; a version without
    it keeps its own message.
    """
    table: Any = getattr(sys.modules.get("jax._src.core"), "pytype_aval_mappings", None)
    if table is not None:
        table[kind] = refuse


def _register_shapes(tree_util: Any) -> None:
    """Register ArrayShape as a pytree, so that JAX treats it like a plain tuple of lengths."""
    tree_util.register_pytree_node(ArrayShape, _lengths, _tuple_of)


def _lengths(shape: ArrayShape) -> tuple[tuple[int, ...], None]:
    return tuple(shape), None


def _tuple_of(_: None, lengths: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(lengths)


def _numpy(self: Any) -> Any:
    """Return the values as a NumPy array to write to, or as a NumPy scalar for a scalar array."""
    return np.array(self)[()]


def _get_shape(self: Any) -> TensorShape:
    """Return the shape, with TensorFlow's methods. Symbols of `jax.export` are unknown lengths."""
    return TensorShape([n if isinstance(n, int) else None for n in self.shape])


def _read_value(self: Any) -> Any:
    """Return the array itself, which is the value of a replica's copy of a variable."""
    return self


if TYPE_CHECKING:
    import jax as typed_jax

    # JAX annotates its functions only in part, and a strict type checker reports every use of such a function.
    # So what evenfeed calls is untyped here. The classes that it names in annotations are JAX's own.

    class _Untyped(type):
        def __getattr__(cls, name: str) -> Any: ...

    class jax(metaclass=_Untyped):  # noqa: N801 - named like the module
        """Stands for the module `jax`, for type checkers."""

        Array = typed_jax.Array

        class sharding(metaclass=_Untyped):  # noqa: N801 - named like the module
            """Stands for the module `jax.sharding`."""

            Mesh = typed_jax.sharding.Mesh
            NamedSharding = typed_jax.sharding.NamedSharding
            Sharding = typed_jax.sharding.Sharding

    jax_extend_core: Any
    jax_ad: Any
    jax_batching: Any
    jax_mlir: Any
    jnp: Any
    jax_linalg: Any
    jax_special: Any
    jax_tree: Any
    checkify: Any
else:
    jax = _LazyJaxModule("jax")
    jax_extend_core = _LazyJaxModule("jax.extend.core")
    jax_ad = _LazyJaxModule("jax.interpreters.ad")
    jax_batching = _LazyJaxModule("jax.interpreters.batching")
    jax_mlir = _LazyJaxModule("jax.interpreters.mlir")
    jax_linalg = _LazyJaxModule("jax.scipy.linalg")
    jax_special = _LazyJaxModule("jax.scipy.special")
    jnp = _LazyJaxModule("jax.numpy")
    jax_tree = _LazyJaxModule("jax.tree_util")
    checkify = _LazyJaxModule("jax.experimental.checkify")
