"""TensorFlow's `tf.data.experimental`: sharding options, `assert_cardinality`, CSV datasets and older names."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from evenfeed.core.arguments import whole_number
from evenfeed.core.optional import Optional
from evenfeed.core.publish import publish, refusal
from evenfeed.core.specs import INFINITE, UNKNOWN
from evenfeed.dataset import Dataset, plan_of
from evenfeed.dataset.composed import (
    Reducer,
    SqlDataset,
    from_list,
    group_by_reducer,
    make_batched_features_dataset,
    pad_to_cardinality,
    parse_example_dataset,
)
from evenfeed.dataset.csv_readers import CsvDataset, make_csv_dataset
from evenfeed.dataset.debug_mode import enable_debug_mode
from evenfeed.dataset.experimental_names import (
    Counter,
    RandomDataset,
    TFRecordWriter,
    at,
    bucket_by_sequence_length,
    choose_from_datasets,
    dense_to_ragged_batch,
    dense_to_sparse_batch,
    enumerate_dataset,
    get_next_as_optional,
    get_single_element,
    get_structure,
    group_by_window,
    ignore_errors,
    map_and_batch,
    parallel_interleave,
    rejection_resample,
    sample_from_datasets,
    scan,
    shuffle_and_repeat,
    take_while,
    unbatch,
    unique,
)
from evenfeed.lookup_tables.dataset_tables import (
    DatasetInitializer,
    index_table_from_dataset,
    table_from_dataset,
)
from evenfeed.plan.buffering import AUTOTUNE
from evenfeed.plan.checking import AssertCardinality
from evenfeed.plan.options import (
    AutoShardPolicy,
    AutotuneAlgorithm,
    AutotuneOptions,
    DistributeOptions,
    ExternalStatePolicy,
    OptimizationOptions,
    ThreadingOptions,
)
from evenfeed.plan.ordering import SHARD_HINT

INFINITE_CARDINALITY: Final = INFINITE
UNKNOWN_CARDINALITY: Final = UNKNOWN

__all__ = [
    "AUTOTUNE",
    "INFINITE_CARDINALITY",
    "SHARD_HINT",
    "UNKNOWN_CARDINALITY",
    "AutoShardPolicy",
    "AutotuneAlgorithm",
    "AutotuneOptions",
    "Counter",
    "CsvDataset",
    "DatasetInitializer",
    "DistributeOptions",
    "ExternalStatePolicy",
    "OptimizationOptions",
    "Optional",
    "RandomDataset",
    "Reducer",
    "SqlDataset",
    "TFRecordWriter",
    "ThreadingOptions",
    "assert_cardinality",
    "at",
    "bucket_by_sequence_length",
    "cardinality",
    "choose_from_datasets",
    "dense_to_ragged_batch",
    "dense_to_sparse_batch",
    "enable_debug_mode",
    "enumerate_dataset",
    "from_list",
    "get_next_as_optional",
    "get_single_element",
    "get_structure",
    "group_by_reducer",
    "group_by_window",
    "ignore_errors",
    "index_table_from_dataset",
    "load",
    "make_batched_features_dataset",
    "make_csv_dataset",
    "map_and_batch",
    "pad_to_cardinality",
    "parallel_interleave",
    "parse_example_dataset",
    "rejection_resample",
    "sample_from_datasets",
    "save",
    "scan",
    "shuffle_and_repeat",
    "snapshot",
    "table_from_dataset",
    "take_while",
    "unbatch",
    "unique",
]


def cardinality(dataset: Dataset) -> np.int64 | int:
    """Return the number of elements of a dataset, INFINITE_CARDINALITY or UNKNOWN_CARDINALITY.

    Examples:
        >>> import evenfeed as tf
        >>> int(tf.data.experimental.cardinality(tf.data.Dataset.range(3)))
        3
    """
    return dataset.cardinality()


def assert_cardinality(expected_cardinality: int) -> Callable[[Dataset], Dataset]:
    """Return a function for `Dataset.apply` that asserts the number of elements.

    Reading raises an error if the dataset has another number of elements.

    Examples:
        >>> import evenfeed as tf
        >>> promised = tf.data.Dataset.range(3).apply(tf.data.experimental.assert_cardinality(3))
        >>> len(promised)
        3
    """
    count = whole_number(expected_cardinality, "expected_cardinality")
    return lambda dataset: Dataset(AssertCardinality(plan_of(dataset), count))


def save(
    dataset: Dataset,
    path: str | os.PathLike[str],
    compression: str | None = None,
    shard_func: Callable[..., Any] | None = None,
    checkpoint_args: Any = None,
) -> None:
    """Write all elements to a directory; an older name of `Dataset.save`.

    Examples:
        >>> import tempfile
        >>> import evenfeed as tf
        >>> folder = tempfile.TemporaryDirectory()
        >>> tf.data.experimental.save(tf.data.Dataset.range(3), folder.name)
        >>> len(tf.data.experimental.load(folder.name))
        3
        >>> folder.cleanup()
    """
    dataset.save(path, compression, shard_func, checkpoint_args)


def load(
    path: str | os.PathLike[str],
    element_spec: Any = None,
    compression: str | None = None,
    reader_func: Callable[[Dataset], Dataset] | None = None,
) -> Dataset:
    """Read a dataset that `save` wrote; an older name of `Dataset.load`.

    Examples:
        >>> import tempfile
        >>> import evenfeed as tf
        >>> folder = tempfile.TemporaryDirectory()
        >>> tf.data.Dataset.range(3).save(folder.name)
        >>> [int(x) for x in tf.data.experimental.load(folder.name)]
        [0, 1, 2]
        >>> folder.cleanup()
    """
    return Dataset.load(path, element_spec, compression, reader_func)


def snapshot(
    path: str | os.PathLike[str],
    compression: str | None = "AUTO",
    reader_func: Callable[[Dataset], Dataset] | None = None,
    shard_func: Callable[..., Any] | None = None,
) -> Callable[[Dataset], Dataset]:
    """Return a function for `Dataset.apply`; an older form of `Dataset.snapshot`.

    Examples:
        >>> import tempfile
        >>> import evenfeed as tf
        >>> folder = tempfile.TemporaryDirectory()
        >>> kept = tf.data.Dataset.range(3).apply(tf.data.experimental.snapshot(folder.name))
        >>> [int(x) for x in kept]
        [0, 1, 2]
        >>> folder.cleanup()
    """
    return lambda dataset: dataset.snapshot(path, compression, reader_func, shard_func)


publish(__name__, __all__, globals())

if not TYPE_CHECKING:
    __getattr__ = refusal(
        __name__, __all__, "The page of names in the docs lists what evenfeed provides."
    )
