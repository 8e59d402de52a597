"""Tables that change: `MutableHashTable` and `DenseHashTable`."""

from typing import Any, final

import numpy as np

from evenfeed.core import dtypes, side_effects
from evenfeed.core.conversion import Array, is_tensor, to_array
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.handles import Handle
from evenfeed.core.promotion import computed_tensor
from evenfeed.core.text.text_values import bytes_array
from evenfeed.lookup_tables.tables import LookUp, dtype_in_table
from evenfeed.replicas import contexts
from evenfeed.replicas.function.staging import Unstaged
from evenfeed.tensors.device_arrays import is_traced
from evenfeed.text_ops.each_text import applied


class MutableTable:
    """What both tables share: a dict, which functions read when they run, not when they are traced."""

    def __init__(self, key_dtype: Any, value_dtype: Any, default_value: Any, name: str) -> None:
        self._key = dtypes.as_dtype(key_dtype)
        self._value = dtypes.as_dtype(value_dtype)
        self._default = to_array(default_value, self._value)
        self._entries: dict[Any, Any] = {}
        self.name = name

    @property
    def key_dtype(self) -> DType:
        """The dtype of the keys."""
        return self._key

    @property
    def value_dtype(self) -> DType:
        """The dtype of the values."""
        return self._value

    def insert(self, keys: Any, values: Any, name: str | None = None) -> None:
        """Set the values of keys."""
        del name
        _leave_trace("changes a table")
        keys, values = self._keys(keys), _held(values, self._value, "values")
        if values.shape != (*keys.shape, *self._default.shape):
            expected = [*keys.shape, *self._default.shape]
            raise InvalidArgumentError(
                f"Expected values of shape {expected}, but got {list(values.shape)}.",
                fix="pass one value for each key.",
            )
        rows = values.reshape(keys.size, *self._default.shape).tolist()
        self._entries.update(zip(keys.ravel().tolist(), rows, strict=True))

    def remove(self, keys: Any, name: str | None = None) -> None:
        """Remove keys. Those that the table does not have are ignored."""
        del name
        _leave_trace("changes a table")
        for key in self._keys(keys).ravel().tolist():
            self._entries.pop(key, None)

    def lookup(self, keys: Any, dynamic_default_values: Any = None, name: str | None = None) -> Any:
        """Return the current value of each key.

        Args:
            keys: The keys.
            dynamic_default_values: A default for each key, instead of that of the table.
            name: Accepted for compatibility.
        """
        del name
        part = isinstance(keys, Handle) or is_traced(keys)
        if part and not self._default.ndim and dynamic_default_values is None:
            _check_dtype(dtype_in_table(keys, self._key), self._key)
            return applied(LookUp(self._entries, self._default), keys)
        _leave_trace("reads a table that may change")
        found = self._keys(keys)
        shape = (*found.shape, *self._default.shape)
        default = self._default if dynamic_default_values is None else dynamic_default_values
        rows = np.broadcast_to(_held(default, self._value, "defaults"), shape)
        rows = rows.reshape(found.size, *self._default.shape).tolist()
        values = [
            self._entries.get(key, other)
            for key, other in zip(found.ravel().tolist(), rows, strict=True)
        ]
        return computed_tensor(_packed(values, self._value).reshape(shape))

    def __getitem__(self, keys: Any) -> Any:
        return self.lookup(keys)

    def size(self, name: str | None = None) -> Any:
        """Return the number of keys."""
        del name
        _leave_trace("reads a table that may change")
        return computed_tensor(np.int64(len(self._entries)))

    def export(self, name: str | None = None) -> tuple[Any, Any]:
        """Return all keys and their values."""
        del name
        _leave_trace("reads a table that may change")
        values = _packed(list(self._entries.values()), self._value)
        whole = values.reshape(len(self._entries), *self._default.shape)
        return computed_tensor(_packed(list(self._entries), self._key)), computed_tensor(whole)

    def get_state(self) -> dict[str, Any]:
        """Return all keys and their values as data for JSON, for a checkpoint."""
        keys, values = list(self._entries), list(self._entries.values())
        return {
            "dtypes": [dtypes.name_of(self._key), dtypes.name_of(self._value)],
            "shape": [len(keys), *self._default.shape],
            "keys": _bytes_of(_packed(keys, self._key)),
            "values": _bytes_of(_packed(values, self._value)),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """Replace all keys and values with those of a checkpoint."""
        own = [dtypes.name_of(self._key), dtypes.name_of(self._value)]
        if state["dtypes"] != own or state["shape"][1:] != list(self._default.shape):
            raise ValueError(
                described(
                    f"The checkpoint has a table of {' and '.join(state['dtypes'])} with values of shape "
                    f"{state['shape'][1:]}, but this one is of {' and '.join(own)} with values of shape "
                    f"{list(self._default.shape)}.",
                    fix="create the table as the one that was saved.",
                )
            )
        keys = _from_bytes(state["keys"], self._key)
        values = _from_bytes(state["values"], self._value).reshape(state["shape"])
        self._entries.clear()  # functions that look up have this very dict
        self._entries.update(zip(keys.tolist(), values.tolist(), strict=True))

    def _keys(self, keys: Any) -> Array:
        return _held(keys, self._key, "keys")


@final
class MutableHashTable(MutableTable):
    """A table to which keys can be added.

    Args:
        key_dtype: The dtype of the keys.
        value_dtype: The dtype of the values.
        default_value: The value of all other keys: a number, a text, or a vector.
        name: Accepted for compatibility.
        checkpoint: Accepted for compatibility.
        experimental_is_anonymous: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, default_value=-1)
        >>> table.insert(["cat", "dog"], [1, 2])
        >>> words = tf.data.Dataset.from_tensor_slices(["dog", "cow"])
        >>> [int(x) for x in words.map(table.lookup)]
        [2, -1]
    """

    def __init__(
        self,
        key_dtype: Any,
        value_dtype: Any,
        default_value: Any,
        name: str = "MutableHashTable",
        checkpoint: bool = True,
        experimental_is_anonymous: bool = False,
    ) -> None:
        del checkpoint, experimental_is_anonymous
        super().__init__(key_dtype, value_dtype, default_value, name)


@final
class DenseHashTable(MutableTable):
    """A table to which keys can be added, with two keys that it cannot have.

    Args:
        key_dtype: The dtype of the keys.
        value_dtype: The dtype of the values.
        default_value: The value of all other keys: a number, a text, or a vector.
        empty_key: A key that cannot be used.
        deleted_key: Another key that cannot be used.
        initial_num_buckets: Accepted for compatibility.
        name: Accepted for compatibility.
        checkpoint: Accepted for compatibility.
        experimental_is_anonymous: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> table = tf.lookup.experimental.DenseHashTable(
        ...     tf.string, tf.int64, default_value=-1, empty_key="", deleted_key="$"
        ... )
        >>> table.insert(["cat"], [1])
        >>> table.lookup(tf.constant(["cat", "cow"])).tolist()
        [1, -1]
    """

    def __init__(
        self,
        key_dtype: Any,
        value_dtype: Any,
        default_value: Any,
        empty_key: Any,
        deleted_key: Any,
        initial_num_buckets: int | None = None,
        name: str = "MutableDenseHashTable",
        checkpoint: bool = True,
        experimental_is_anonymous: bool = False,
    ) -> None:
        del initial_num_buckets, checkpoint, experimental_is_anonymous
        super().__init__(key_dtype, value_dtype, default_value, name)
        reserved = [_held(key, self._key, "keys").item() for key in (empty_key, deleted_key)]
        if reserved[0] == reserved[1]:
            raise InvalidArgumentError(
                f"empty_key and deleted_key must differ, but both are {reserved[0]!r}.",
                fix="pass two keys that your data does not have.",
            )
        self._reserved = reserved

    def insert_or_assign(self, keys: Any, values: Any, name: str | None = None) -> None:
        """Set the values of keys."""
        self.insert(keys, values, name)

    def erase(self, keys: Any, name: str | None = None) -> None:
        """Remove keys. Those that the table does not have are ignored."""
        self.remove(keys, name)

    def lookup(self, keys: Any, dynamic_default_values: Any = None, name: str | None = None) -> Any:
        """Return the current value of each key."""
        if isinstance(keys, Handle) or is_traced(keys):
            _leave_trace("checks the keys of a table")  # so that reserved ones are found
        return super().lookup(keys, dynamic_default_values, name)

    def _keys(self, keys: Any) -> Array:
        found = super()._keys(keys)
        for reserved in self._reserved:
            if reserved in found.ravel().tolist():
                raise InvalidArgumentError(
                    f"{reserved!r} is the empty_key or the deleted_key, which the table cannot have.",
                    fix="create the table with other ones.",
                )
        return found


def _leave_trace(what: str) -> None:
    """Stop a trace: what a table holds then would become a part of the program."""
    if contexts.staging() is not None:
        raise Unstaged(f"it {what}", expected=True)
    watcher = side_effects.here.watcher
    if watcher is not None:
        watcher.call(f"a function that {what}")


def _held(value: Any, dtype: DType, what: str) -> Array:
    """Return keys or values as an array of the table's dtype."""
    if not is_tensor(value):
        return to_array(value, dtype)
    _check_dtype(dtype_in_table(value, dtype), dtype, what)
    return to_array(value).astype(dtype)


def _check_dtype(found: DType, expected: DType, what: str = "keys") -> None:
    if found != expected:
        raise ValueError(
            described(
                f"The {what} must be {dtypes.name_of(expected)}, but got {dtypes.name_of(found)}.",
                fix=f"convert them: evenfeed.cast({what}, evenfeed.{dtypes.name_of(expected)}).",
            )
        )


def _packed(values: list[Any], dtype: DType) -> Array:
    return bytes_array(values) if dtype == dtypes.string else np.array(values, dtype)


def _bytes_of(array: Array) -> Any:
    """Return an array as data for JSON: its bytes as text, or a list of those of each text."""
    if array.dtype == dtypes.string:
        return [text.decode("latin-1") for text in array.ravel().tolist()]
    return array.tobytes().decode("latin-1")


def _from_bytes(data: Any, dtype: DType) -> Array:
    if dtype == dtypes.string:
        return bytes_array([text.encode("latin-1") for text in data])
    return np.frombuffer(data.encode("latin-1"), dtype)
