"""Tables whose keys come from a dataset: `DatasetInitializer`, `table_from_dataset` and `index_table_from_dataset`."""

from typing import Any, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array, to_array
from evenfeed.core.dtypes import DType
from evenfeed.core.errors import described
from evenfeed.core.specs import TensorSpec
from evenfeed.core.text.text_values import bytes_array
from evenfeed.dataset import plan_of
from evenfeed.dataset.face import dataset_of
from evenfeed.lookup_tables.initializers import KeyValueTensorInitializer, TableInitializer
from evenfeed.lookup_tables.tables import StaticHashTable, StaticVocabularyTable
from evenfeed.plan.checking import AssertCardinality


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
        key_dtype: string, or an integer dtype. Without buckets, the dtype of the dataset's keys counts.
        name: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> pairs = tf.data.Dataset.from_tensor_slices((["a", "b"], [5, 6]))
        >>> table = tf.data.experimental.table_from_dataset(pairs, default_value=-1)
        >>> table.lookup(tf.constant(["b", "?"])).tolist()
        [6, -1]
    """
    del hasher_spec
    initializer = DatasetInitializer(_words(dataset, vocab_size))
    _check_keys(initializer.key_dtype, dtypes.as_dtype(key_dtype), num_oov_buckets)
    if default_value is None and initializer.value_dtype.kind not in "iuf":
        raise ValueError(
            described(
                f"The values are {dtypes.name_of(initializer.value_dtype)}, so default_value is needed.",
                fix="pass the value of other keys: default_value=...",
            )
        )
    if num_oov_buckets:
        return StaticVocabularyTable(initializer, num_oov_buckets, name=name)
    return StaticHashTable(initializer, -1 if default_value is None else default_value, name)


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
    words = _words(dataset, vocab_size)
    if not _is_scalar(words.element_spec):
        raise ValueError(
            described(
                f"The table needs a dataset of keys without axes, but got elements of {words.element_spec}.",
                fix="select the keys first: dataset.map(lambda key, value: key).",
            )
        )
    _check_keys(words.element_spec.dtype, dtypes.as_dtype(key_dtype), num_oov_buckets)
    keys = _vector(list(words), words.element_spec.dtype)
    initializer = KeyValueTensorInitializer(keys, np.arange(len(keys), dtype=np.int64))
    if num_oov_buckets:
        return StaticVocabularyTable(initializer, num_oov_buckets, name=name)
    return StaticHashTable(initializer, default_value, name)


def _words(dataset: Any, vocab_size: int | None) -> Any:
    """Return the first `vocab_size` elements of a dataset, which fails if it has fewer."""
    if vocab_size is None:
        return dataset
    if vocab_size < 1:
        raise ValueError(
            described(
                f"vocab_size must be at least 1, but got {vocab_size}.",
                fix="pass how many keys the table has, or omit vocab_size.",
            )
        )
    return dataset_of(AssertCardinality(plan_of(dataset.take(vocab_size)), vocab_size))


def _check_keys(found: DType, named: DType, buckets: int) -> None:
    """Check the arguments about keys. Only buckets need the right `key_dtype`: they hash the keys by it."""
    if buckets < 0:
        raise ValueError(
            described(
                f"num_oov_buckets must be at least 0, but got {buckets}.",
                fix="pass how many values other keys share, or omit num_oov_buckets.",
            )
        )
    if named != dtypes.string and named.kind not in "iu":
        raise TypeError(
            described(
                f"Keys must be integers or text, not {dtypes.name_of(named)}.",
                fix="pass key_dtype=evenfeed.int64, or omit it for text.",
            )
        )
    if buckets and named != found:
        raise TypeError(
            described(
                f"The keys must be {dtypes.name_of(named)}, but the dataset has {dtypes.name_of(found)}.",
                fix=f"pass key_dtype=evenfeed.{dtypes.name_of(found)}.",
            )
        )


def _pair_of_specs(dataset: Any) -> tuple[Any, Any]:
    specs: Any = getattr(dataset, "element_spec", None)
    what = f"The table needs a dataset of (key, value) without axes, but got elements of {specs}."
    fix = "make pairs: dataset.map(lambda x: (key, value))."
    if not isinstance(specs, tuple):
        raise TypeError(described(what, fix=fix))
    parts: list[Any] = [*specs]
    if len(parts) != 2 or not all(map(_is_scalar, parts)):
        raise ValueError(described(what, fix=fix))
    return parts[0], parts[1]


def _is_scalar(spec: Any) -> bool:
    return isinstance(spec, TensorSpec) and spec.shape.rank == 0


def _vector(values: list[Any], dtype: DType) -> Array:
    arrays = [to_array(value) for value in values]
    if dtype == dtypes.string:
        return bytes_array([array.item() for array in arrays])
    return np.array([array.item() for array in arrays], dtype)
