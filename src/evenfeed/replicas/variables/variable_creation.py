"""How `Variable(...)` chooses what to make: creators of the user's, and the strategy that is current."""

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
    """The type of `Variable`: calling it asks the creators first, then the strategy."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """Make a variable."""
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
        """Make the variable that belongs into the scope that is current.

        In a replica's function all replicas make it together, from what the first one passes.
        """
        level = contexts.frame()
        if level is not None and level.context is not None and level.replicas.count > 1:
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
    """What one replica passes: a class of its own, so that no tree is taken apart."""

    kwargs: dict[str, Any]


def _named(given: inspect.BoundArguments) -> dict[str, Any]:
    return {name: value for name, value in given.arguments.items() if name != "self"}


def _with(creator: Creator, following: Creator) -> Creator:
    def make(**kwargs: Any) -> Any:
        return creator(following, **kwargs)

    return make


@contextmanager
def variable_creator_scope(variable_creator: Creator) -> Generator[None]:
    """Let a function make, or change, each variable that is created in the block.

    Args:
        variable_creator: Called with the next creator and the arguments of `Variable`; returns the
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
