"""`Mirrored`: a value that is the same on every replica."""

from collections.abc import Sequence
from functools import cache
from typing import Any, final

import numpy as np

from evenfeed.core.lazy_jax import jax
from evenfeed.replicas.one_array import copies_of, count_here, replicated_array
from evenfeed.replicas.values import DistributedValues, register_state
from evenfeed.replicas.variables.variable_arithmetic import Operators


@final
class Mirrored(DistributedValues, Operators):
    """A value with an equal copy on every replica.

    It can be used like a tensor: `value + 1`, `value.shape`, `value.numpy()`, `float(value)`.

    Args:
        values: The copies in replica order, each on its device.
        array: Instead of `values`, one array that is replicated over the replicas' devices.
        count: The number of replicas, for an array that is a tracer and has no devices.

    Examples:
        >>> import evenfeed as tf
        >>> strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
        >>> with strategy.scope():
        ...     steps = tf.Variable(0)
        >>> int(steps.assign_add(1)), (steps.assign_add(1) * 10).tolist()
        (1, 20)
    """

    __slots__ = ("_array", "_count", "_loose", "_parts")

    def __init__(
        self,
        values: Sequence[Any] = (),
        *,
        array: "jax.Array | None" = None,
        count: int | None = None,
    ) -> None:
        _register()
        register_state(Mirrored)
        self._array = array
        self._count = count
        self._loose = None
        self._parts = None if array is not None else tuple(values)

    @property
    def parts(self) -> tuple[Any, ...]:
        """The copies in replica order, committed to their devices."""
        if self._parts is None:
            self._parts = copies_of(self.array, self.part_count)
        return self._parts

    @property
    def part_count(self) -> int:
        """The number of copies on this worker."""
        return count_here(self._array, self._count) if self._parts is None else len(self._parts)

    @property
    def array(self) -> "jax.Array":
        """The value as one `jax.Array` that is replicated over the replicas' devices."""
        if self._array is None:
            assert self._parts is not None
            self._array = replicated_array(self._parts)
        return self._array

    def value(self) -> Any:
        """Return the value as a tensor."""
        return self.values[0]

    @property
    def shape(self) -> Any:
        """The shape of the value."""
        return self.values[0].shape

    @property
    def dtype(self) -> Any:
        """The dtype of the value."""
        return self.values[0].dtype

    def __getattr__(self, name: str) -> Any:
        # As in TensorFlow, it has all attributes of its tensor: `numpy()`, `ndim`, `sum()`, …
        if not name.startswith("_"):
            return getattr(self.values[0], name)
        raise AttributeError(f"A Mirrored has no attribute {name!r}.", name=name, obj=self)

    def __jax_array__(self) -> Any:
        return self.values[0]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.values[0], dtype, copy=copy)

    def opened(self) -> tuple[tuple[Any, ...], int]:
        """Flatten it for `jax.tree`: return its children and metadata."""
        # It flattens the way it was unflattened, whatever `jax.tree.map` put in place of its array.
        array = self.array if self._count is None else self._array
        return (array,), self.part_count

    @staticmethod
    def closed(count: int, children: Sequence[Any]) -> "Mirrored":
        """Unflatten it for `jax.tree`."""
        made = _new(Mirrored)  # faster than __init__, and every compiled step makes some
        made._array, made._count, made._loose, made._parts = children[0], count, None, None
        if children[0] is None:
            made._parts = (None,) * count
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return Mirrored, (self.parts,)


_new: Any = object.__new__


@cache
def _register() -> None:
    """Register the pytree node when the first value is made, because JAX is loaded by then."""
    jax.tree_util.register_pytree_node(Mirrored, Mirrored.opened, Mirrored.closed)
