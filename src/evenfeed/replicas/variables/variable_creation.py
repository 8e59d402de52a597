"""Chooses the class that `Variable(...)` creates, by user creators and the current strategy."""

import inspect
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, final

from evenfeed.replicas import contexts
from evenfeed.replicas.function.staging import about_to_create
from evenfeed.replicas.values import PerReplica

Creator = Callable[..., Any]


class Created(type):
    """The metaclass of `Variable`. Calling the class applies the creators, then asks the strategy."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls.__name__ != "Variable":
            return super().__call__(*args, **kwargs)
        about_to_create()
        given = inspect.signature(cls.__init__).bind(None, *args, **kwargs)
        make: Creator = cls.make
        if not contexts.here.creators:
            return make(**_named(given))
        given.apply_defaults()
        for creator in contexts.here.creators:
            make = _with(creator, make)
        return make(**_named(given))

    def make(cls, **kwargs: Any) -> Any:
        """Make a variable for the current scope.

        Inside `run`, all replicas make it together, with the arguments of the first one.
        """
        level = contexts.frame()
        if level is not None and level.context is not None and not level.replicas.is_lone:
            return level.context.replica.merge(cls._made, (_Given(kwargs),), {})
        return cls._made(_Given(kwargs))

    def _made(cls, given: Any) -> Any:
        kwargs = (given.parts[0] if isinstance(given, PerReplica) else given).kwargs
        level = contexts.frame()
        kind = cls if level is None else level.strategy.extended.variable_kind(cls, kwargs)
        return type.__call__(kind, **kwargs)


@final
@dataclass(frozen=True, slots=True, eq=False)
class _Given:
    """The arguments of one replica, in a class that is not a pytree, so that they are not flattened."""

    kwargs: dict[str, Any]


def _named(given: inspect.BoundArguments) -> dict[str, Any]:
    return {name: value for name, value in given.arguments.items() if name != "self"}


def _with(creator: Creator, following: Creator) -> Creator:
    def make(**kwargs: Any) -> Any:
        return creator(following, **kwargs)

    return make


@contextmanager
def variable_creator_scope(variable_creator: Creator) -> Generator[None]:
    """Call a function to make or change each variable that is created in the block.

    Args:
        variable_creator: Called with the next creator and the arguments of `Variable`. Returns the
            variable.

    Examples:
        >>> import evenfeed as tf
        >>> def counting(next_creator, **kwargs):
        ...     return next_creator(**{**kwargs, "trainable": False})
        >>> with tf.variable_creator_scope(counting):
        ...     tf.Variable(1).trainable
        False
    """
    contexts.here.creators.append(variable_creator)
    try:
        yield
    finally:
        contexts.here.creators.pop()
