"""Tables whose keys come from a dataset: `DatasetInitializer`, `table_from_dataset` and `index_table_from_dataset`."""

from itertools import islice
from typing import Any, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array, to_array
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import described
from evenfeed.core.text.text_values import bytes_array
from evenfeed.lookup_tables.initializers import KeyValueTensorInitializer, TableInitializer
from evenfeed.lookup_tables.tables import StaticHashTable, StaticVocabularyTable


@final
class DatasetInitializer(TableInitializer):
    """Takes keys and values from a dataset of pairs.

    Args:
        dataset: A dataset of (key, value), both without axes.

    Examples:
        >>> import evenfeed as tf
        >>> pairs = tf.data.Dataset.from_tensor_slices((["a", "b"], [5, 6]))
        >>> words = tf.data.experimental.DatasetInitializer(pairs)
        >>> tf.lookup.StaticHashTable(words, default_value=-1).lookup(tf.constant(["b", "?"])).tolist()
        [6, -1]
    """

    def __init__(self, dataset: Any) -> None:
        self._specs = _pair_of_specs(dataset)
        self._dataset = dataset

    @property
    def key_dtype(self) -> DType:
        return self._specs[0].dtype

    @property
    def value_dtype(self) -> DType:
        return self._specs[1].dtype

    def entries(self) -> tuple[Array, Array]:
        pairs = list(self._dataset)
        keys, values = ([pair[place] for pair in pairs] for place in (0, 1))
        return _vector(keys, self.key_dtype), _vector(values, self.value_dtype)


def table_from_dataset(
    dataset: Any = None,
    num_oov_buckets: int = 0,
    vocab_size: int | None = None,
    default_value: Any = None,
    hasher_spec: object = None,
    key_dtype: Any = dtypes.string,
    name: str | None = None,
) -> Any:
    """Make a table of a dataset of (key, value).

    Args:
        dataset: The dataset.
        num_oov_buckets: How many values other keys share, by their hash.
        vocab_size: How many pairs to take; by default all.
        default_value: The value of other keys, if there are no buckets.
        hasher_spec: Accepted for compatibility.
        key_dtype: The dtype of the keys.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> pairs = tf.data.Dataset.from_tensor_slices((["a", "b"], [5, 6]))
        >>> table = tf.data.experimental.table_from_dataset(pairs, default_value=-1)
        >>> table.lookup(tf.constant(["b", "?"])).tolist()
        [6, -1]
    """
    del hasher_spec
    key, _ = _pair_of_specs(dataset)
    if dtypes.as_dtype(key_dtype) != key.dtype:
        raise TypeError(
            described(
                f"The keys must be {dtypes.name_of(dtypes.as_dtype(key_dtype))}, but the dataset has "
                f"{dtypes.name_of(key.dtype)}.",
                fix=f"pass key_dtype=evenfeed.{dtypes.name_of(key.dtype)}.",
            )
        )
    if num_oov_buckets < 0 or (vocab_size is not None and vocab_size < 1):
        raise ValueError(
            described(
                f"num_oov_buckets must be at least 0 and vocab_size at least 1, but got {num_oov_buckets} and "
                f"{vocab_size}.",
                fix="pass larger numbers.",
            )
        )
    taken = dataset if vocab_size is None else dataset.take(vocab_size)
    initializer = DatasetInitializer(taken)
    if num_oov_buckets:
        return StaticVocabularyTable(initializer, num_oov_buckets, name=name)
    empty = b"" if initializer.value_dtype == dtypes.string else -1
    return StaticHashTable(initializer, empty if default_value is None else default_value, name)


def index_table_from_dataset(
    dataset: Any = None,
    num_oov_buckets: int = 0,
    vocab_size: int | None = None,
    default_value: int = -1,
    hasher_spec: object = None,
    key_dtype: Any = dtypes.string,
    name: str | None = None,
) -> Any:
    """Make a table of the numbers of a dataset's elements, counted from 0; see `table_from_dataset`.

    Examples:
        >>> import evenfeed as tf
        >>> words = tf.data.Dataset.from_tensor_slices(["cat", "dog"])
        >>> table = tf.data.experimental.index_table_from_dataset(words)
        >>> table.lookup(tf.constant(["dog", "cow"])).tolist()
        [1, -1]
    """
    del hasher_spec
    keys = _vector(list(islice(dataset, vocab_size)), dtypes.as_dtype(key_dtype))
    initializer = KeyValueTensorInitializer(keys, np.arange(len(keys), dtype=np.int64))
    if num_oov_buckets:
        return StaticVocabularyTable(initializer, num_oov_buckets, name=name)
    return StaticHashTable(initializer, default_value, name)


def _pair_of_specs(dataset: Any) -> tuple[Any, Any]:
    specs: Any = getattr(dataset, "element_spec", None)
    parts: list[Any] = [*specs] if isinstance(specs, tuple) else []
    if len(parts) != 2:
        raise TypeError(
            described(
                f"The table needs a dataset of (key, value), but got elements of {specs}.",
                fix="make pairs: dataset.map(lambda x: (key, value)).",
            )
        )
    return parts[0], parts[1]


def _vector(values: list[Any], dtype: DType) -> Array:
    arrays = [to_array(value) for value in values]
    if dtype == dtypes.string:
        return bytes_array([array.item() for array in arrays])
    return np.array([array.item() for array in arrays], dtype)
