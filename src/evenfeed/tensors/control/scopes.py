"""Scopes and facts of a graph that code written for TensorFlow mentions: `name_scope`, `device`, `group` and so on."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

# ruff: noqa: ARG001 - TensorFlow's arguments; operations run in the order in which they are written

import re
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any, Final, final

import numpy as np

from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.lazy import logging
from evenfeed.core.lazy_jax import jax
from evenfeed.tensors.creation import convert_to_tensor, is_on_device
from evenfeed.tensors.device_arrays import is_traced, is_tracing

_scope: Final[ContextVar[str]] = ContextVar("_scope", default="")


def group(*inputs: object, **kwargs: object) -> None:
    """Do nothing: what was passed has been computed.

    Examples:
        >>> import evenfeed as tf
        >>> tf.group(tf.constant(1), tf.constant(2))
    """


def no_op(name: str | None = None) -> None:
    """Do nothing.

    Examples:
        >>> import evenfeed as tf
        >>> tf.no_op()
    """


@contextmanager
def control_dependencies(control_inputs: Iterable[Any] | None) -> Generator[None]:
    """Run a block. Its code always runs after the code before it. Functions among the inputs are called first.

    Examples:
        >>> import evenfeed as tf
        >>> with tf.control_dependencies([tf.constant(1)]):
        ...     total = tf.constant(2)
        >>> int(total)
        2
    """
    for one in control_inputs or ():
        if callable(one):
            one()
    yield


@final
class name_scope:  # noqa: N801 - TensorFlow's name
    """A scope of names: variables that are made in it have its name before theirs.

    Examples:
        >>> import evenfeed as tf
        >>> with tf.name_scope("layer") as scope:
        ...     names = scope, tf.get_current_name_scope()
        ...     weights = tf.Variable(1.0, name="weights")
        >>> names, weights.name
        (('layer/', 'layer'), 'layer/weights:0')
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise ValueError(f"The name of a scope must be a str, but got {name!r}.")
        self._name = name

    @property
    def name(self) -> str:
        """The name of the scope."""
        return self._name

    def __enter__(self) -> str:
        outer = _scope.get()
        is_whole = self._name.endswith("/")
        inner = self._name.rstrip("/") if is_whole or not outer else f"{outer}/{self._name}"
        self._token = _scope.set(inner if self._name else "")
        return f"{inner}/" if self._name else ""

    def __exit__(self, *error: object) -> None:
        _scope.reset(self._token)


def get_current_name_scope() -> str:
    """Return the names of the open scopes, joined by slashes.

    Examples:
        >>> import evenfeed as tf
        >>> tf.get_current_name_scope()
        ''
    """
    return _scope.get()


def scoped_name(name: str) -> str:
    """Return a name with the names of the open scopes before it."""
    scope = _scope.get()
    return f"{scope}/{name}" if scope else name


@contextmanager
def init_scope() -> Generator[None]:
    """Compute at once in a block, even in a compiled function, with values that are known while it is traced.

    Examples:
        >>> import evenfeed as tf
        >>> @tf.function
        ... def double(x):
        ...     with tf.init_scope():
        ...         factor = int(tf.constant(1) + 1)
        ...     return factor * x
        >>> int(double(3))
        6
    """
    with jax.ensure_compile_time_eval():
        yield


def inside_function() -> bool:
    """Return True in a compiled function, while it is traced.

    Examples:
        >>> import evenfeed as tf
        >>> tf.inside_function()
        False
    """
    return is_tracing()


def get_logger() -> "logging.Logger":
    """Return evenfeed's logger.

    Examples:
        >>> import evenfeed as tf
        >>> tf.get_logger().setLevel("ERROR")
        >>> tf.get_logger().setLevel("NOTSET")
    """
    return logging.getLogger("evenfeed")


@contextmanager
def device(device_name: object) -> Generator[None]:
    """Create tensors on this device in a block. In a compiled function, it changes nothing.

    Args:
        device_name: For example "CPU:0" or "/device:GPU:1"; None changes nothing.

    Examples:
        >>> import evenfeed as tf
        >>> with tf.device("CPU:0"):
        ...     x = tf.constant(1)
    """
    if device_name is None or is_tracing():
        yield
        return
    with jax.default_device(_device(str(device_name))):
        yield


def _device(name: str) -> Any:
    found = re.search(r"(?:^|[/:])(CPU|GPU|TPU)(?::(\d+|\*))?$", name, re.IGNORECASE)
    try:
        devices = jax.devices(found[1].lower()) if found else []
    except RuntimeError:  # JAX has no such platform here
        devices = []
    index = int(found[2]) if found and found[2] and found[2] != "*" else 0
    if index < len(devices):
        return devices[index]
    known = ", ".join(f"{one.platform.upper()}:{one.id}" for one in jax.devices())
    raise InvalidArgumentError(f"There is no device {name!r}.", fix=f"pass one of: {known}.")


def executing_eagerly() -> bool:
    """Return True unless a function is being traced.

    Examples:
        >>> import evenfeed as tf
        >>> tf.executing_eagerly()
        True
    """
    return not is_tracing()


def is_symbolic_tensor(tensor: object) -> bool:
    """Return True for a tensor without values, in a function that is being traced.

    Examples:
        >>> import evenfeed as tf
        >>> tf.is_symbolic_tensor(tf.constant(1))
        False
    """
    return is_traced(tensor)


def get_static_value(tensor: object, partial: bool = False) -> Any:
    """Return the values of a tensor as a NumPy array; None if they are unknown while JAX traces.

    Examples:
        >>> import evenfeed as tf
        >>> tf.get_static_value(tf.constant([1, 2])).tolist()
        [1, 2]
    """
    if is_traced(tensor):
        return None
    return np.asarray(convert_to_tensor(tensor)) if is_on_device(tensor) else np.asarray(tensor)
