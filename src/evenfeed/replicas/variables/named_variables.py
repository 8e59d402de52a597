"""`get_variable` and `variable_scope` of TensorFlow 1. As in eager TensorFlow, each call makes a new variable."""

import enum
import math
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from contextvars import ContextVar, Token
from dataclasses import dataclass, replace
from typing import Any, Final, final

from evenfeed.core import dtypes
from evenfeed.core.errors import described
from evenfeed.core.shapes import TensorShape
from evenfeed.replicas.reduce.reduce_op import VariableAggregation, VariableSynchronization
from evenfeed.replicas.variables.variable import Variable
from evenfeed.tensors.control.scopes import name_scope
from evenfeed.tensors.creation import convert_to_tensor, zeros
from evenfeed.tensors.randomness import uniform


@final
class ReuseMode(enum.Enum):
    """Whether a scope finds variables again. Without graphs there are none to find."""

    AUTO_REUSE = 1


AUTO_REUSE: Final = ReuseMode.AUTO_REUSE


@final
@dataclass(frozen=True)
class VariableScope:
    """A prefix of names, and what variables in it have by default.

    Attributes:
        name: The prefix.
        initializer: The initializer of variables that have none of their own.
        dtype: The dtype of variables that have none of their own.
        constraint: The constraint of variables that have none of their own.
    """

    name: str = ""
    initializer: Any = None
    dtype: Any = dtypes.float32
    constraint: Callable[[Any], Any] | None = None

    @property
    def original_name_scope(self) -> str:
        """The prefix, with a slash."""
        return f"{self.name}/" if self.name else ""

    @property
    def reuse(self) -> ReuseMode:
        """AUTO_REUSE, as in eager TensorFlow."""
        return AUTO_REUSE

    def reuse_variables(self) -> None:
        """Do nothing, as in eager TensorFlow: each call of `get_variable` makes a variable."""


_scope: Final[ContextVar[VariableScope | None]] = ContextVar("_scope", default=None)


def get_variable_scope() -> VariableScope:
    """Return the scope of the running code.

    Examples:
        >>> import evenfeed as tf
        >>> with tf.compat.v1.variable_scope("layer"):
        ...     tf.compat.v1.get_variable_scope().name
        'layer'
    """
    return _scope.get() or VariableScope()


@final
class variable_scope:  # noqa: N801 - TensorFlow's name
    """Puts a prefix before the names of variables that `get_variable` makes in a block, and sets their defaults.

    Variables are not found again: keep them, for example in an `evenfeed.Module`.

    Args:
        name_or_scope: The prefix, which follows that of the scope around; or a scope to enter again.
        default_name: The prefix if `name_or_scope` is None.
        values: Accepted for compatibility.
        initializer: The default initializer.
        regularizer: Accepted for compatibility: no collection keeps its losses.
        caching_device: Accepted for compatibility.
        partitioner: Accepted for compatibility.
        custom_getter: Not supported.
        reuse: Accepted for compatibility.
        dtype: The default dtype.
        use_resource: Accepted for compatibility.
        constraint: The default constraint.
        auxiliary_name_scope: Whether it is a `name_scope` too, for variables that are made without `get_variable`.

    Examples:
        >>> import evenfeed as tf
        >>> with tf.compat.v1.variable_scope("layer", initializer=tf.zeros_initializer()):
        ...     tf.compat.v1.get_variable("w", [2]).name
        'layer/w:0'
    """

    def __init__(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
        self,
        name_or_scope: "str | VariableScope | None",
        default_name: str | None = None,
        values: object = None,
        initializer: Any = None,
        regularizer: object = None,
        caching_device: object = None,
        partitioner: object = None,
        custom_getter: object = None,
        reuse: object = None,
        dtype: Any = None,
        use_resource: object = None,
        constraint: Callable[[Any], Any] | None = None,
        auxiliary_name_scope: bool = True,
    ) -> None:
        del values, regularizer, caching_device, partitioner, reuse, use_resource
        _check_getter(custom_getter)
        given = default_name if name_or_scope is None else name_or_scope
        if not isinstance(given, (str, VariableScope)):
            raise TypeError(
                described(
                    f"A variable scope needs a name, but got {given!r}.",
                    fix='pass one: variable_scope("layer").',
                )
            )
        self._given = given
        self._own = {"initializer": initializer, "dtype": dtype, "constraint": constraint}
        self._token: Token[VariableScope | None] | None = None
        name = given if isinstance(given, str) else given.name.rpartition("/")[2]
        self._names = name_scope(name) if auxiliary_name_scope else nullcontext()

    def __enter__(self) -> VariableScope:
        own = {name: value for name, value in self._own.items() if value is not None}
        if isinstance(self._given, VariableScope):
            scope = replace(self._given, **own)
        else:
            around = get_variable_scope()
            scope = replace(around, name=around.original_name_scope + self._given, **own)
        self._token = _scope.set(scope)
        self._names.__enter__()
        return scope

    def __exit__(self, *_: object) -> None:
        assert self._token is not None
        self._names.__exit__(None, None, None)
        _scope.reset(self._token)


def get_variable(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    name: str,
    shape: Any = None,
    dtype: Any = None,
    initializer: Any = None,
    regularizer: object = None,
    trainable: bool | None = None,
    collections: object = None,
    caching_device: object = None,
    partitioner: object = None,
    validate_shape: bool = True,
    use_resource: object = None,
    custom_getter: object = None,
    constraint: Callable[[Any], Any] | None = None,
    synchronization: VariableSynchronization = VariableSynchronization.AUTO,
    aggregation: VariableAggregation = VariableAggregation.NONE,
) -> Any:
    """Make a variable, as eager TensorFlow does: each call makes a new one.

    Args:
        name: The name, which follows the prefix of the `variable_scope`.
        shape: The shape, unless `initializer` is a value.
        dtype: The dtype; by default that of the scope, or float32.
        initializer: A value, or a function of a shape and a dtype. By default, floats are drawn by Glorot's rule, and
            other dtypes are zero.
        regularizer: Accepted for compatibility: no collection keeps its losses.
        trainable: See `Variable`.
        collections: Accepted for compatibility.
        caching_device: Accepted for compatibility.
        partitioner: Accepted for compatibility.
        validate_shape: Accepted for compatibility.
        use_resource: Accepted for compatibility.
        custom_getter: Not supported.
        constraint: See `Variable`.
        synchronization: See `Variable`.
        aggregation: See `Variable`.

    Examples:
        >>> import evenfeed as tf
        >>> v = tf.compat.v1.get_variable("w", [2], initializer=tf.ones_initializer())
        >>> v.numpy().tolist()
        [1.0, 1.0]
    """
    del regularizer, collections, caching_device, partitioner, validate_shape, use_resource
    _check_getter(custom_getter)
    scope = get_variable_scope()
    start = scope.initializer if initializer is None else initializer
    start = start() if isinstance(start, type) else start
    asked = dtypes.as_dtype(scope.dtype if dtype is None else dtype)
    with name_scope(""):  # a variable scope names it instead
        return Variable(
            _first_value(name, start, shape, asked, dtype),
            trainable=trainable,
            name=scope.original_name_scope + name,
            constraint=constraint or scope.constraint,
            synchronization=synchronization,
            aggregation=aggregation,
        )


def _first_value(name: str, start: Any, shape: Any, asked: dtypes.DType, given: Any) -> Any:
    """Return the initial value, or a function that makes it."""
    if start is not None and not callable(start):
        if shape is not None:
            raise ValueError(
                described(
                    f"The initializer of {name!r} is a value, which has a shape of its own.",
                    fix="leave out shape, or pass evenfeed.constant_initializer(value).",
                )
            )
        return convert_to_tensor(start, None if given is None else asked)
    if shape is None or not TensorShape(shape).is_fully_defined():
        raise ValueError(
            described(
                f"The variable {name!r} has no initial value, so it needs its whole shape.",
                fix="pass shape=[...], or a value as initializer.",
            )
        )
    lengths: list[Any] = TensorShape(shape).as_list()
    if start is not None:
        return lambda: start(lengths, dtype=asked)
    if asked.kind != "f" and asked != dtypes.bfloat16:
        return lambda: zeros(lengths, asked)
    return lambda: _glorot(lengths, asked)


def _glorot(lengths: Sequence[int], dtype: dtypes.DType) -> Any:
    """Draw numbers whose bound follows from the numbers of inputs and outputs, by Glorot's rule."""
    sides = [math.prod(lengths[:-2]) * length for length in lengths[-2:]] or [1]
    bound = math.sqrt(3.0 / max(1.0, sum(sides) / len(sides)))
    return uniform(lengths, -bound, bound, dtype)


def _check_getter(custom_getter: object) -> None:
    if custom_getter is not None:
        raise NotImplementedError(
            described(
                "custom_getter is not supported.",
                fix="use evenfeed.variable_creator_scope(creator).",
            )
        )
