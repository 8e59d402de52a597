"""The methods of a variable that read or change some of its entries."""

from collections.abc import Callable
from typing import Any, Final

from evenfeed.core.sparse.variable_slices import remember_slice
from evenfeed.replicas.variables.assignments import (
    AtEntries,
    AtKey,
    How,
    add,
    batches_at,
    entries_at,
    put,
    rows_at,
    subtract,
)
from evenfeed.replicas.variables.variable_arguments import Facts
from evenfeed.replicas.variables.variable_arithmetic import Operators
from evenfeed.tensors.arrays.picking import gather, gather_nd

_OF_SLICES: Final[dict[str, How]] = {"assign": put, "assign_add": add, "assign_sub": subtract}


class ScatterMethods(Facts):
    """The methods of a variable that read or change some of its entries.

    In the functions of replicas, the updates are aggregated: with SUM all are applied, with MEAN each divided by the
    number of replicas, and with ONLY_FIRST_REPLICA those of the first replica.
    """

    def _assigned(self, how: How, value: Any, read_value: bool) -> Any:
        """Assign a value, and return the result of the assignment."""
        raise NotImplementedError

    def _check_scatter(self, how: AtEntries) -> None:
        """Check that this kind of variable can change entries in this way."""

    # --- v[key].assign(x) --------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        at = key.value() if isinstance(key, Operators) else key

        def change(method: str, value: Any, read_value: bool) -> Any:
            return self._assigned(AtKey(at, _OF_SLICES[method]), value, read_value)

        return remember_slice(found, change)

    # --- rows --------------------------------------------------------------------------------

    def scatter_add(
        self, sparse_delta: Any, use_locking: bool = False, name: str | None = None
    ) -> Any:
        """Add to the rows with these indices.

        Args:
            sparse_delta: The rows and their indices. Updates of the same row add up.
            use_locking: Accepted for compatibility.
            name: Accepted for compatibility.

        Returns:
            What `assign` returns.

        Examples:
            >>> import evenfeed as tf
            >>> v = tf.Variable([1.0, 2.0, 3.0])
            >>> v.scatter_add(tf.IndexedSlices([10.0, 20.0], [0, 2])).numpy().tolist()
            [11.0, 2.0, 23.0]
        """
        del use_locking, name
        return self._scatter(AtEntries("scatter_add", "add"), rows_at, sparse_delta)

    def scatter_sub(
        self, sparse_delta: Any, use_locking: bool = False, name: str | None = None
    ) -> Any:
        """Subtract from the rows with these indices; see `scatter_add`."""
        del use_locking, name
        return self._scatter(AtEntries("scatter_sub", "subtract"), rows_at, sparse_delta)

    def scatter_update(
        self, sparse_delta: Any, use_locking: bool = False, name: str | None = None
    ) -> Any:
        """Assign the rows with these indices; see `scatter_add`."""
        del use_locking, name
        return self._scatter(AtEntries("scatter_update", "set"), rows_at, sparse_delta)

    def scatter_max(
        self, sparse_delta: Any, use_locking: bool = False, name: str | None = None
    ) -> Any:
        """Keep the larger one of the old and the new value in the rows with these indices."""
        del use_locking, name
        return self._scatter(AtEntries("scatter_max", "max"), rows_at, sparse_delta)

    def scatter_min(
        self, sparse_delta: Any, use_locking: bool = False, name: str | None = None
    ) -> Any:
        """Keep the smaller one of the old and the new value in the rows with these indices."""
        del use_locking, name
        return self._scatter(AtEntries("scatter_min", "min"), rows_at, sparse_delta)

    def scatter_mul(
        self, sparse_delta: Any, use_locking: bool = False, name: str | None = None
    ) -> Any:
        """Multiply the rows with these indices; see `scatter_add`."""
        del use_locking, name
        return self._scatter(AtEntries("scatter_mul", "multiply"), rows_at, sparse_delta)

    def scatter_div(
        self, sparse_delta: Any, use_locking: bool = False, name: str | None = None
    ) -> Any:
        """Divide the rows with these indices; see `scatter_add`."""
        del use_locking, name
        return self._scatter(AtEntries("scatter_div", "divide"), rows_at, sparse_delta)

    def batch_scatter_update(
        self, sparse_delta: Any, use_locking: bool = False, name: str | None = None
    ) -> Any:
        """Assign rows in each batch: the last axis of the indices counts the rows of one batch.

        Examples:
            >>> import evenfeed as tf
            >>> v = tf.Variable([[1.0, 2.0], [3.0, 4.0]])
            >>> v.batch_scatter_update(tf.IndexedSlices([[10.0], [20.0]], [[1], [0]])).numpy().tolist()
            [[1.0, 10.0], [20.0, 4.0]]
        """
        del use_locking, name
        return self._scatter(AtEntries("batch_scatter_update", "set"), batches_at, sparse_delta)

    # --- entries -----------------------------------------------------------------------------

    def scatter_nd_add(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Add to the entries at these places; the last axis of `indices` holds the index along each axis.

        Examples:
            >>> import evenfeed as tf
            >>> v = tf.Variable([[1, 2], [3, 4]])
            >>> v.scatter_nd_add([[0, 1], [1, 0]], [10, 20]).numpy().tolist()
            [[1, 12], [23, 4]]
        """
        del name
        return self._scatter(AtEntries("scatter_nd_add", "add"), entries_at, indices, updates)

    def scatter_nd_sub(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Subtract from the entries at these places; see `scatter_nd_add`."""
        del name
        return self._scatter(AtEntries("scatter_nd_sub", "subtract"), entries_at, indices, updates)

    def scatter_nd_update(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Assign the entries at these places; see `scatter_nd_add`."""
        del name
        return self._scatter(AtEntries("scatter_nd_update", "set"), entries_at, indices, updates)

    def scatter_nd_max(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Keep the larger one of the old and the new value at these places; see `scatter_nd_add`."""
        del name
        return self._scatter(AtEntries("scatter_nd_max", "max"), entries_at, indices, updates)

    def scatter_nd_min(self, indices: Any, updates: Any, name: str | None = None) -> Any:
        """Keep the smaller one of the old and the new value at these places; see `scatter_nd_add`."""
        del name
        return self._scatter(AtEntries("scatter_nd_min", "min"), entries_at, indices, updates)

    def _scatter(self, how: AtEntries, entries: Callable[..., Any], *given: Any) -> Any:
        self._check_scatter(how)
        shape = tuple(self.value().shape)
        return self._assigned(how, entries(how, shape, self._dtype, *given), read_value=True)

    # --- reading -----------------------------------------------------------------------------

    def sparse_read(self, indices: Any, name: str | None = None) -> Any:
        """Return the rows with these indices.

        Examples:
            >>> import evenfeed as tf
            >>> tf.Variable([1.0, 2.0, 3.0]).sparse_read([2, 0]).tolist()
            [3.0, 1.0]
        """
        del name
        return gather(self, indices)

    def gather_nd(self, indices: Any, name: str | None = None) -> Any:
        """Return the entries at these places; the last axis of `indices` holds the index along each axis."""
        del name
        return gather_nd(self, indices)
