"""How `Variable(...)` chooses what to make: creators of the user's, and the strategy that is current."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

from evenfeed.replicas import contexts
from evenfeed.replicas.staging import about_to_create

Creator = Callable[..., Any]


class Created(type):
    """The type of `Variable`: calling it asks the creators first, then the strategy."""

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        """Make a variable."""
        if cls.__name__ != "Variable":
            return super().__call__(*args, **kwargs)
        about_to_create()
        make: Creator = cls.make
        if not contexts.here.creators:
            return make(*args, **kwargs)
        kwargs = {**dict(zip(_POSITIONAL, args, strict=False)), **kwargs}
        for creator in contexts.here.creators:
            make = _with(creator, make)
        return make(**kwargs)

    def make(cls, *args: Any, **kwargs: Any) -> Any:
        """Make the variable that belongs into the scope that is current."""
        level = contexts.frame()
        kind = cls if level is None else level.strategy.extended.variable_kind(cls, kwargs)
        return type.__call__(kind, *args, **kwargs)


_POSITIONAL = (
    "initial_value",
    "trainable",
    "validate_shape",
    "caching_device",
    "name",
    "variable_def",
    "dtype",
    "import_scope",
    "constraint",
    "synchronization",
    "aggregation",
    "shape",
)


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
