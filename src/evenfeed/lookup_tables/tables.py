"""Tables that map keys to values: `StaticHashTable` and `StaticVocabularyTable`."""

from functools import cached_property
from typing import Any, ClassVar, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array, is_tensor, to_array
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import FailedPreconditionError, described
from evenfeed.core.handles import Handle
from evenfeed.core.promotion import computed_tensor, is_narrowed
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.core.tensor_types import asked_width
from evenfeed.core.text.numba_loops import is_worth_it
from evenfeed.core.text.text_columns import Texts
from evenfeed.core.text.text_values import bytes_array
from evenfeed.lookup_tables.initializers import TableInitializer
from evenfeed.lookup_tables.word_numbers import WordNumbers
from evenfeed.text_ops.each_text import EachText, applied
from evenfeed.text_ops.hashing import HashBucket


def dtype_in_table(value: Any, expected: DType) -> DType:
    """Return the dtype of keys or values. Without x64, a device holds 64 bits in 32: they count as the expected ones."""
    if (asked := asked_width(value)) is not None:
        return asked
    return expected if is_narrowed(value, expected) else dtypes.as_dtype(value.dtype)


class _Table:
    """What both tables have: dtypes, and the check of keys."""

    _key: DType
    _kernel: EachText

    @property
    def key_dtype(self) -> DType:
        """The dtype of the keys."""
        return self._key

    @property
    def value_dtype(self) -> DType:
        """The dtype of the values."""
        return self._kernel.gives

    def lookup(self, keys: Any, name: str | None = None) -> Any:
        """Return the value of each key.

        Raises:
            TypeError: The keys have another dtype.
        """
        del name
        held = isinstance(keys, (Handle, RaggedTensor)) or is_tensor(keys)
        value = keys if held else to_array(keys)
        dtype = dtype_in_table(value, self._key)
        if dtype != self._key:
            raise TypeError(
                described(
                    f"The keys must be {dtypes.name_of(self._key)}, but got {dtypes.name_of(dtype)}.",
                    fix=f"convert them: evenfeed.cast(keys, evenfeed.{dtypes.name_of(self._key)}).",
                )
            )
        return applied(self._kernel, value)

    def __getitem__(self, keys: Any) -> Any:
        return self.lookup(keys)


@final
class StaticHashTable(_Table):
    """A table that does not change.

    Args:
        initializer: Where keys and values come from.
        default_value: The value of all other keys.
        name: Accepted for compatibility.
        experimental_is_anonymous: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> table = tf.lookup.StaticHashTable(
        ...     tf.lookup.KeyValueTensorInitializer(["cat", "dog"], [0, 1]), default_value=-1
        ... )
        >>> words = tf.data.Dataset.from_tensor_slices(["dog", "cow"])
        >>> list(words.map(table.lookup).as_numpy_iterator())
        [np.int32(1), np.int32(-1)]
    """

    def __init__(
        self,
        initializer: TableInitializer,
        default_value: Any,
        name: str | None = None,
        experimental_is_anonymous: bool = False,
    ) -> None:
        del experimental_is_anonymous
        self.name = name
        self._key = initializer.key_dtype
        self._default = to_array(default_value, initializer.value_dtype).reshape(())
        self._entries = _unique(*initializer.entries())
        keys, values = self._entries
        self._kernel = LookUp(dict(zip(keys.tolist(), values.tolist(), strict=True)), self._default)

    @property
    def default_value(self) -> Any:
        """The value of keys that the table does not have."""
        return computed_tensor(self._default)

    def size(self, name: str | None = None) -> Any:
        """Return the number of keys."""
        del name
        return computed_tensor(np.int64(len(self._entries[0])))

    def export(self, name: str | None = None) -> tuple[Any, Any]:
        """Return all keys and their values."""
        del name
        keys, values = self._entries
        return computed_tensor(keys), computed_tensor(values)


@final
class StaticVocabularyTable(_Table):
    """A vocabulary: each key has an id, and other keys are spread over extra ids by their hash.

    Args:
        initializer: Where keys and ids come from; ids are int64. None if there are only extra ids.
        num_oov_buckets: How many ids other keys share. They follow after the number of keys.
        lookup_key_dtype: The dtype of the keys that are looked up, if it is not that of the table.
        name: Accepted for compatibility.
        experimental_is_anonymous: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> words = tf.lookup.KeyValueTensorInitializer(["cat", "dog"], [0, 1], value_dtype=tf.int64)
        >>> tf.lookup.StaticVocabularyTable(words, 3).lookup(tf.constant(["dog", "yak"])).tolist()
        [1, 3]
    """

    def __init__(
        self,
        initializer: TableInitializer | None,
        num_oov_buckets: int,
        lookup_key_dtype: Any = None,
        name: str | None = None,
        experimental_is_anonymous: bool = False,
    ) -> None:
        del experimental_is_anonymous
        self.name = name
        if num_oov_buckets < 1:
            raise ValueError(
                described(
                    f"num_oov_buckets must be at least 1, but got {num_oov_buckets}.",
                    fix="use evenfeed.lookup.StaticHashTable, which has no ids for other keys.",
                )
            )
        own = dtypes.string if initializer is None else initializer.key_dtype
        self._key = own if lookup_key_dtype is None else dtypes.as_dtype(lookup_key_dtype)
        self._check(initializer, own)
        empty = bytes_array([]), np.zeros(0, np.int64)
        keys, ids = empty if initializer is None else _unique(*initializer.entries())
        self._size = len(keys) + int(num_oov_buckets)
        known = dict(zip(keys.tolist(), ids.tolist(), strict=True))
        self._kernel = NumberWords(known, HashBucket("fast", int(num_oov_buckets)))

    def _check(self, initializer: TableInitializer | None, own: DType) -> None:
        if initializer is not None and initializer.value_dtype != dtypes.int64:
            raise TypeError(
                described(
                    f"The ids must be int64, but got {dtypes.name_of(initializer.value_dtype)}.",
                    fix="pass value_dtype=evenfeed.int64.",
                )
            )
        if (own == dtypes.string) != (self._key == dtypes.string):
            raise TypeError(
                described(
                    f"Keys of {dtypes.name_of(own)} cannot be looked up by {dtypes.name_of(self._key)}.",
                    fix="omit lookup_key_dtype, or pass an integer dtype for integer keys.",
                )
            )

    def size(self, name: str | None = None) -> Any:
        """Return the number of ids, those of other keys included."""
        del name
        return computed_tensor(np.int64(self._size))


@final
class LookUp(EachText):
    """Looks up keys in a dict. Two are equal if they are the same object, like their tables."""

    takes: ClassVar[DType | None] = None

    def __init__(self, values: dict[Any, Any], default: Array) -> None:
        self.gives = dtypes.as_dtype(default.dtype)
        self._values = values
        self._default = default.item()

    @cached_property
    def _numbered(self) -> tuple[WordNumbers, Array]:
        """The keys, and their values in the same order with the default value at the end."""
        held = [*self._values.values(), self._default]
        is_text = self.gives == dtypes.string
        values = bytes_array(held) if is_text else np.array(held, self.gives)
        return WordNumbers(list(self._values)), values

    def in_buffer(self, texts: Texts) -> Array | None:
        if not is_worth_it(texts.size):
            return None
        words, values = self._numbered
        return values[words.of(texts)]

    def each(self, values: list[Any]) -> Array:
        found, default = self._values.get, self._default
        each = [found(value, default) for value in values]
        return bytes_array(each) if self.gives == dtypes.string else np.array(each, self.gives)


@final
class NumberWords(EachText):
    """Looks up the ids of words, and hashes words without one. Two are equal if they are the same object."""

    takes: ClassVar[DType | None] = None

    def __init__(self, ids: dict[Any, int], buckets: HashBucket) -> None:
        self.gives = dtypes.int64
        self._ids = ids
        self._buckets = buckets

    @cached_property
    def _numbered(self) -> tuple[WordNumbers, Array]:
        return WordNumbers(list(self._ids)), np.array([*self._ids.values(), -1], np.int64)

    def in_buffer(self, texts: Texts) -> Array | None:
        if not is_worth_it(texts.size):
            return None
        words, ids = self._numbered
        numbers = words.of(texts).reshape(-1)
        found = ids[numbers]
        others = np.flatnonzero(numbers < 0)
        found[others] = len(self._ids) + self._buckets.in_buffer(texts.reshape(-1).take(others))
        return found.reshape(texts.shape)

    def each(self, values: list[Any]) -> Array:
        ids = np.array([self._ids.get(value, -1) for value in values], np.int64)
        others = [row for row, value in enumerate(values) if value not in self._ids]
        if others:
            # TensorFlow hashes the text of an integer.
            texts = [_as_text(values[row]) for row in others]
            ids[others] = len(self._ids) + self._buckets.each(texts)
        return ids


def _as_text(value: Any) -> bytes:
    return value if isinstance(value, bytes) else str(value).encode()


def _unique(keys: Array, values: Array) -> tuple[Array, Array]:
    """Return each key once. Raises FailedPreconditionError if a key has several values."""
    found: dict[Any, Any] = {}
    for key, value in zip(keys.tolist(), values.tolist(), strict=True):
        if found.setdefault(key, value) != value:
            raise FailedPreconditionError(
                f"The table has several values for one key: {key!r} has {found[key]!r} and {value!r}.",
                fix="pass each key once.",
            )
    rows = np.sort(np.unique(keys, return_index=True)[1])
    return keys[rows], values[rows]
