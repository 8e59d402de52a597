"""How an assignment computes a variable's new value: as a whole, at a key, or at some entries."""

# jax.numpy's type annotations are incomplete.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, final

import numpy as np

from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.lazy_jax import jax, jnp
from evenfeed.tensors.arrays.picking import check_places, indices_of, traced_index
from evenfeed.tensors.creation import convert_to_tensor
from evenfeed.tensors.device_arrays import is_traced
from evenfeed.tensors.indexed_slices import IndexedSlices

# Computes a variable's new value from its old value and the argument of an assignment.
How: TypeAlias = Callable[[Any, Any], Any]


def put(old: Any, new: Any) -> Any:
    """Replace the value."""
    del old
    return new


def add(old: Any, new: Any) -> Any:
    """Add to the value."""
    return old + new


def subtract(old: Any, new: Any) -> Any:
    """Subtract from the value."""
    return old - new


class Partly(ABC):
    """Changes a part of the value. The argument does not have the variable's shape."""

    @abstractmethod
    def fitting(self, dtype: Any, value: Any) -> Any:
        """Convert the argument of the assignment to the variable's dtype."""

    @abstractmethod
    def __call__(self, old: Any, new: Any) -> Any:
        """Return the new value."""


@final
@dataclass(frozen=True, eq=False)
class AtKey(Partly):
    """Changes what `variable[key]` reads.

    Attributes:
        key: The key.
        how: `put`, `add` or `subtract`.
    """

    key: Any
    how: How

    def fitting(self, dtype: Any, value: Any) -> Any:
        return convert_to_tensor(value, dtype)

    def __call__(self, old: Any, new: Any) -> Any:
        part = old[self.key]
        extra = new.ndim - part.ndim
        if extra > 0 and math.prod(new.shape[:extra]) == 1:
            new = new.reshape(new.shape[extra:])
        if not _broadcasts(new.shape, part.shape):
            raise InvalidArgumentError(
                f"The slice has shape {tuple(part.shape)}, but the value has shape {tuple(new.shape)}.",
                fix="pass a value of the shape of the slice, or one that broadcasts to it.",
            )
        return old.at[self.key].set(self.how(part, jnp.broadcast_to(new, part.shape)))


def _broadcasts(shape: tuple[int, ...], onto: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(shape, onto) == onto
    except ValueError:
        return False


@final
@dataclass(frozen=True)
class AtEntries(Partly):
    """Changes the entries with some indices. Its argument are IndexedSlices with one row of indices per entry.

    Attributes:
        name: The name of the variable's method, for errors.
        method: What to do with the old entry and the new one: a method of `.at` in JAX.
    """

    name: str
    method: str

    @property
    def adds_up(self) -> bool:
        """Return True if the updates of several replicas can be applied together."""
        return self.method in {"add", "subtract", "multiply", "divide"}

    def fitting(self, dtype: Any, value: Any) -> Any:
        del dtype  # the method has converted it
        return value

    def __call__(self, old: Any, new: IndexedSlices) -> Any:
        places, values = new.indices, new.values
        lengths = old.shape[: places.shape[-1]]
        where = tuple(traced_index(places[:, axis], n) for axis, n in enumerate(lengths))
        if self.method == "subtract":
            return old.at[where].add(-values, **_DROPPED)
        if self.method == "divide":
            divisors = jnp.ones_like(old).at[where].multiply(values, **_DROPPED)
            return jax.lax.div(old, divisors)  # integers are truncated, as in TensorFlow
        return getattr(old.at[where], self.method)(values, **_DROPPED)


# A known index that is out of range was found before. Compiled code ignores others, as JAX does.
_DROPPED: Final[dict[str, Any]] = {"mode": "drop", "wrap_negative_indices": False}


def rows_at(how: AtEntries, shape: tuple[int, ...], dtype: Any, sparse_delta: Any) -> IndexedSlices:
    """Return the rows to change as entries of a variable with this shape and dtype."""
    _check_slices(sparse_delta)
    places = indices_of(sparse_delta.indices)
    return _entries(how, shape, dtype, jnp.expand_dims(places, -1), sparse_delta.values)


def entries_at(
    how: AtEntries, shape: tuple[int, ...], dtype: Any, indices: object, updates: object
) -> IndexedSlices:
    """Return the entries to change of a variable with this shape and dtype."""
    return _entries(how, shape, dtype, indices_of(indices), updates)


def batches_at(
    how: AtEntries, shape: tuple[int, ...], dtype: Any, sparse_delta: Any
) -> IndexedSlices:
    """Return the rows to change in each batch, as entries: the last axis of the indices counts rows of a batch."""
    _check_slices(sparse_delta)
    places = indices_of(sparse_delta.indices)
    batches = jnp.indices(places.shape, places.dtype, sparse=False)[:-1]
    return _entries(how, shape, dtype, jnp.stack([*batches, places], axis=-1), sparse_delta.values)


def _check_slices(given: Any) -> None:
    if not isinstance(given, IndexedSlices):
        raise TypeError(
            described(
                f"sparse_delta must be IndexedSlices, but got {type(given).__name__}.",
                fix="pass evenfeed.IndexedSlices(values, indices).",
            )
        )


def _entries(
    how: AtEntries, shape: tuple[int, ...], dtype: Any, places: Any, updates: object
) -> IndexedSlices:
    if dtype.kind == "b" and how.method != "set":
        raise InvalidArgumentError(
            f"{how.name} needs a variable of numbers, but its dtype is bool.",
            fix="call scatter_update.",
        )
    check_places(how.name, places, shape)
    values: Any = convert_to_tensor(updates, dtype)
    whole = (*places.shape[:-1], *shape[places.shape[-1] :])
    if values.ndim and values.shape != whole:
        raise InvalidArgumentError(
            f"{how.name} with indices of shape {tuple(places.shape)} needs values of shape {whole}, but got "
            f"{tuple(values.shape)}.",
            fix="pass one value, or one row of values, for each index.",
        )
    if how.method == "divide" and dtype.kind in "iu" and not is_traced(values):
        _check_divisors(values)
    rows = jnp.broadcast_to(values, whole)
    count = math.prod(places.shape[:-1])
    return IndexedSlices(
        rows.reshape(count, *whole[places.ndim - 1 :]), places.reshape(count, places.shape[-1])
    )


def _check_divisors(values: Any) -> None:
    if not np.asarray(values).all():
        raise InvalidArgumentError(
            "scatter_div divides integers by 0.", fix="pass divisors other than 0."
        )
