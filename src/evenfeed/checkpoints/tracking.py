"""What a checkpoint saves of an object: its children by name, and its own values.

`tracked(value)` answers for every object. It is a single-dispatch function, so that a class of another library can be
saved without changing this file:

    @tracked.register(Layer)
    def _(layer):
        return Tracked(lambda: {"kernel": layer.kernel})

A child is any object that `tracked` knows. Values are arrays (`ArrayLeaf`) or a state for JSON (`StateLeaf`).
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any, Final, cast, final

from evenfeed.core.iteration import Iterator
from evenfeed.lookup_tables.mutable_tables import MutableTable
from evenfeed.lookup_tables.tables import StaticHashTable, StaticVocabularyTable
from evenfeed.replicas.generators import Generator
from evenfeed.replicas.variables.module import Module
from evenfeed.replicas.variables.moving_averages import ExponentialMovingAverage, saved_averages

# The name of a value that is a single array, as in TensorFlow.
VALUE: Final = "VARIABLE_VALUE"


@dataclass(frozen=True)
class ArrayInfo:
    """The key, shape and dtype of a stored array."""

    key: str
    shape: tuple[int, ...]
    dtype: str


class ArrayLeaf(ABC):
    """The arrays that are the value of an object."""

    @abstractmethod
    def arrays(self) -> dict[str, Any]:
        """Return the arrays to save, by name: `jax.Array` or NumPy. They must not change later."""

    @abstractmethod
    def targets(self, found: Mapping[str, ArrayInfo], where: str) -> dict[str, Any]:
        """Check the stored arrays, and return how to read each of those to restore.

        Args:
            found: What is stored.
            where: The path of the object in the checkpoint, for errors.

        Returns:
            For each name a `jax.sharding.Sharding`, or None for a NumPy array.
        """

    @abstractmethod
    def put(self, arrays: Mapping[str, Any]) -> None:
        """Make the stored arrays the value of the object."""


class StateLeaf(ABC):
    """A state for JSON that is the value of an object. Each worker has its own."""

    @abstractmethod
    def state(self) -> Any:
        """Return the state to save, as data for JSON."""

    @abstractmethod
    def put(self, state: Any) -> None:
        """Restore the state."""


@final
@dataclass(frozen=True)
class Tracked:
    """What a checkpoint saves of one object.

    Attributes:
        children: Returns the objects below it, by name.
        leaf: Its own value.
        face: An object whose attributes are the children of this one: the root of a Checkpoint.
        await_children: Calls a function once the object has more children than now. None if it has all.
    """

    children: Callable[[], Mapping[str, Any]] = dict[str, Any]
    leaf: ArrayLeaf | StateLeaf | None = None
    face: Any = None
    await_children: Callable[[Callable[[], None]], None] | None = None


@singledispatch
def tracked(value: Any) -> Tracked | None:
    """Return what a checkpoint saves of an object; None for an object that cannot be saved."""
    del value
    return None


@tracked.register
def _(value: Module) -> Tracked:
    return Tracked(lambda: trackable_in(vars(value)))


@tracked.register
def _(value: Generator) -> Tracked:
    return Tracked(lambda: {"_state_var": vars(value)["_words"]})


@tracked.register
def _(value: ExponentialMovingAverage) -> Tracked:
    return Tracked(lambda: saved_averages(value))


@tracked.register(StaticHashTable)
@tracked.register(StaticVocabularyTable)
def _(value: Any) -> Tracked:
    del value
    return Tracked()  # its initializer makes it again


@tracked.register
def _(value: MutableTable) -> Tracked:
    return Tracked(leaf=TableLeaf(value))


@tracked.register
def _(value: Iterator) -> Tracked:
    return Tracked(leaf=IteratorLeaf(value))


@tracked.register(list)
@tracked.register(tuple)
def _(value: Sequence[Any]) -> Tracked | None:
    return _container({str(place): entry for place, entry in enumerate(value)})


@tracked.register
def _(value: dict) -> Tracked | None:  # pyright: ignore[reportUnknownParameterType, reportMissingTypeArgument]
    return _container(cast("dict[Any, Any]", value))


def _container(entries: Mapping[Any, Any]) -> Tracked | None:
    """Return what is saved of a list, tuple or dict; None if it has entries, but no objects among them."""
    if entries and not any(map(_has_object, entries.values())):
        return None
    return Tracked(lambda: trackable_in(entries))


def _has_object(value: Any) -> bool:
    """Return True for an object that can be saved, and for a container of one."""
    if isinstance(value, (list, tuple, dict)) and not value:
        return False  # it may be a part of a tree of arrays
    return tracked(value) is not None


def children_of(value: Any) -> Mapping[Any, Any]:
    """Return the objects below an object, by name."""
    known = tracked(value)
    return dict[Any, Any]() if known is None else known.children()


def trackable_in(entries: Mapping[Any, Any]) -> dict[Any, Any]:
    """Select the entries that can be saved."""
    return {name: value for name, value in entries.items() if tracked(value) is not None}


@final
class IteratorLeaf(StateLeaf):
    """The position of an iterator."""

    def __init__(self, iterator: Iterator) -> None:
        self._iterator = iterator

    def state(self) -> Any:
        return self._iterator.get_state()

    def put(self, state: Any) -> None:
        self._iterator.set_state(state)


@final
class TableLeaf(StateLeaf):
    """The keys and values of a table that changes."""

    def __init__(self, table: MutableTable) -> None:
        self._table = table

    def state(self) -> Any:
        return self._table.get_state()

    def put(self, state: Any) -> None:
        self._table.set_state(state)
