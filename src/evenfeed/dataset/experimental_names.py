"""Names of `tf.data.experimental`: `TFRecordWriter`, functions for `Dataset.apply`, and older names of methods."""

from collections.abc import Callable, Sequence
from contextlib import closing
from functools import wraps
from inspect import signature
from typing import Any, Concatenate, ParamSpec, final

from evenfeed.core import dtypes
from evenfeed.core.arguments import compression_type_of, whole_number
from evenfeed.core.callsite import where_called
from evenfeed.core.errors import InvalidArgumentError, described, shortened
from evenfeed.core.iteration import Iterator
from evenfeed.core.specs import TensorSpec
from evenfeed.dataset import Dataset
from evenfeed.dataset.face import plans_of
from evenfeed.formats.tfrecord import record_writer
from evenfeed.rewrite.one_element import first_pass, one_element
from evenfeed.runtime.elements import ElementIterator
from evenfeed.runtime.run import Run


def at(dataset: Dataset, index: Any) -> Any:
    """Return the element of a dataset at an index, without reading the others.

    A shuffled dataset is accessed in the order of its first pass, also if it is iterated in between.

    Args:
        dataset: A dataset whose elements have positions: not behind `filter`, `flat_map` and the like.
        index: The position, from 0 on.

    Raises:
        UnimplementedError: A step of the dataset has no random access.
        FailedPreconditionError: The cardinality is infinite or unknown.
        OutOfRangeError: The dataset has no element at the index.

    Examples:
        >>> import evenfeed as tf
        >>> dataset = tf.data.Dataset.range(10).map(lambda x: x * x).batch(4)
        >>> tf.data.experimental.at(dataset, 1).tolist()
        [16, 25, 36, 49]
    """
    (elements,) = plans_of((dataset,))
    plan = one_element(elements, whole_number(index, "index"))
    with closing(
        ElementIterator(plan, tensors=True, begun=Run(plan, first_pass).state())
    ) as iterator:
        return next(iterator)


@final
class TFRecordWriter:
    """Writes a dataset of records to a TFRecord file. `tf.io.TFRecordWriter` writes single records.

    Args:
        filename: The path; an existing file is replaced.
        compression_type: "GZIP" or "ZLIB"; "" or None for no compression.

    Examples:
        >>> import tempfile
        >>> import evenfeed as tf
        >>> path = tempfile.mkdtemp() + "/few.tfrecord"
        >>> records = tf.data.Dataset.from_tensor_slices([b"one", b"two"])
        >>> tf.data.experimental.TFRecordWriter(path).write(records)
        >>> list(tf.data.TFRecordDataset(path).as_numpy_iterator())
        [b'one', b'two']
    """

    def __init__(self, filename: Any, compression_type: str | None = None) -> None:
        self._path = filename
        self._compression = compression_type_of(compression_type)

    def write(self, dataset: Dataset) -> None:
        """Write all elements, which must be scalar strings."""
        if not isinstance(dataset, Dataset):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise TypeError(
                described(
                    f"Invalid dataset: expected a Dataset, but got {type(dataset).__name__}.",
                    fix="pass a dataset, or write records with tf.io.TFRecordWriter.",
                )
            )
        spec = dataset.element_spec
        if not TensorSpec([], dtypes.string).is_compatible_with(spec):
            raise TypeError(
                described(
                    f"Invalid dataset: its elements must be scalar strings, but are {spec}.",
                    fix="map each element to example.SerializeToString().",
                )
            )
        with record_writer.TFRecordWriter(self._path, self._compression) as writer:
            for record in dataset:
                writer.write(record)


Given = ParamSpec("Given")
Applied = Callable[[Dataset], Dataset]


def _for_apply(
    method: Callable[Concatenate[Dataset, Given], Any], name: str | None = None
) -> Callable[Given, Applied]:
    """Return a function that takes a method's arguments and returns a function for `Dataset.apply`."""

    @wraps(method)
    def older(*args: Given.args, **kwargs: Given.kwargs) -> Applied:
        return lambda dataset: method(dataset, *args, **kwargs)

    called = name or method.__name__
    older.__name__ = older.__qualname__ = called
    older.__doc__ = (
        f"Return a function for `Dataset.apply`; an older form of `Dataset.{method.__name__}`."
    )
    own, *others = signature(method).parameters.values()
    del own
    older.__signature__ = signature(method).replace(parameters=others)  # pyright: ignore[reportAttributeAccessIssue]
    return older


bucket_by_sequence_length = _for_apply(Dataset.bucket_by_sequence_length)
enumerate_dataset = _for_apply(Dataset.enumerate, "enumerate_dataset")
group_by_window = _for_apply(Dataset.group_by_window)
ignore_errors = _for_apply(Dataset.ignore_errors)
rejection_resample = _for_apply(Dataset.rejection_resample)
scan = _for_apply(Dataset.scan)
take_while = _for_apply(Dataset.take_while)
unbatch = _for_apply(Dataset.unbatch)
unique = _for_apply(Dataset.unique)


def map_and_batch(
    map_func: Callable[..., Any],
    batch_size: int,
    num_parallel_batches: int | None = None,
    drop_remainder: bool = False,
    num_parallel_calls: int | None = None,
) -> Applied:
    """Return a function for `Dataset.apply` that maps and then batches.

    Examples:
        >>> import evenfeed as tf
        >>> squares = tf.data.experimental.map_and_batch(lambda x: x * x, 2)
        >>> [x.tolist() for x in tf.data.Dataset.range(3).apply(squares)]
        [[0, 1], [4]]
    """
    if num_parallel_calls is not None and num_parallel_batches is not None:
        raise ValueError(
            described(
                "num_parallel_batches and num_parallel_calls cannot both be passed.",
                fix="pass only num_parallel_calls.",
                origin=where_called(),
            )
        )
    if num_parallel_batches is not None:
        num_parallel_calls = batch_size * num_parallel_batches
    return lambda dataset: dataset.map(map_func, num_parallel_calls).batch(
        batch_size, drop_remainder
    )


def shuffle_and_repeat(
    buffer_size: int, count: int | None = None, seed: int | None = None
) -> Applied:
    """Return a function for `Dataset.apply` that shuffles and then repeats.

    Examples:
        >>> import evenfeed as tf
        >>> twice = tf.data.Dataset.range(3).apply(tf.data.experimental.shuffle_and_repeat(3, count=2))
        >>> sorted(int(x) for x in twice)
        [0, 0, 1, 1, 2, 2]
    """
    if count is not None and (times := whole_number(count, "count")) != -1 and times < 1:
        raise InvalidArgumentError(
            f"count must be at least 1, or -1 to repeat indefinitely, but got {times}.",
            fix="pass the number of rounds; call take(0) for an empty dataset.",
            origin=where_called(),
        )
    return lambda dataset: dataset.shuffle(buffer_size, seed).repeat(count)


def parallel_interleave(
    map_func: Callable[..., Dataset],
    cycle_length: int,
    block_length: int = 1,
    sloppy: bool = False,
    buffer_output_elements: int | None = None,
    prefetch_input_elements: int | None = None,
) -> Applied:
    """Return a function for `Dataset.apply`; an older form of `Dataset.interleave` with `num_parallel_calls`.

    Args:
        map_func: Maps an element to a dataset.
        cycle_length: The number of datasets to interleave.
        block_length: The number of consecutive elements to take from each dataset.
        sloppy: Accepted for compatibility; the order never depends on timing.
        buffer_output_elements: Accepted for compatibility; ignored.
        prefetch_input_elements: Accepted for compatibility; ignored.

    Examples:
        >>> import evenfeed as tf
        >>> turns = tf.data.experimental.parallel_interleave(lambda x: tf.data.Dataset.range(x, x + 2), 2)
        >>> [int(x) for x in tf.data.Dataset.from_tensor_slices([0, 10]).apply(turns)]
        [0, 10, 1, 11]
    """
    del buffer_output_elements, prefetch_input_elements
    count = whole_number(cycle_length, "cycle_length")
    if count < 1:
        raise InvalidArgumentError(
            f"cycle_length must be at least 1, but got {count}.",
            fix="pass how many datasets to interleave.",
        )
    return lambda dataset: dataset.interleave(
        map_func, count, block_length, deterministic=not sloppy
    )


def Counter(  # noqa: N802 - TensorFlow's name
    start: Any = 0, step: Any = 1, dtype: Any = dtypes.int64
) -> Dataset:
    """Create an infinite dataset that counts; an older name of `Dataset.counter`.

    Examples:
        >>> import evenfeed as tf
        >>> [int(x) for x in tf.data.experimental.Counter(2).take(2)]
        [2, 3]
    """
    return Dataset.counter(start, step, dtype)


def RandomDataset(  # noqa: N802 - TensorFlow's name
    seed: int | None = None,
    rerandomize_each_iteration: bool | None = None,
    name: str | None = None,
) -> Dataset:
    """Create an infinite dataset of random numbers; an older name of `Dataset.random`.

    Examples:
        >>> import evenfeed as tf
        >>> len(list(tf.data.experimental.RandomDataset(7).take(2)))
        2
    """
    return Dataset.random(seed, rerandomize_each_iteration, name)


def choose_from_datasets(
    datasets: Sequence[Dataset], choice_dataset: Dataset, stop_on_empty_dataset: bool = False
) -> Dataset:
    """Take each element from a selected dataset; an older name of `Dataset.choose_from_datasets`.

    Unlike that method, it skips choices of exhausted datasets by default.

    Examples:
        >>> import evenfeed as tf
        >>> few, many = tf.data.Dataset.range(1), tf.data.Dataset.range(10, 20)
        >>> choice = tf.data.Dataset.range(2).repeat(2)
        >>> [int(x) for x in tf.data.experimental.choose_from_datasets([few, many], choice)]
        [0, 10, 11]
    """
    return Dataset.choose_from_datasets(datasets, choice_dataset, stop_on_empty_dataset)


def sample_from_datasets(
    datasets: Sequence[Dataset],
    weights: Any = None,
    seed: int | None = None,
    stop_on_empty_dataset: bool = False,
) -> Dataset:
    """Take each element from a random dataset; an older name of `Dataset.sample_from_datasets`.

    Examples:
        >>> import evenfeed as tf
        >>> data = [tf.data.Dataset.range(2), tf.data.Dataset.range(5, 7)]
        >>> sorted(int(x) for x in tf.data.experimental.sample_from_datasets(data, seed=1))
        [0, 1, 5, 6]
    """
    return Dataset.sample_from_datasets(datasets, weights, seed, stop_on_empty_dataset)


def get_single_element(dataset: Dataset) -> Any:
    """Return the only element of a dataset; an older name of `Dataset.get_single_element`.

    Examples:
        >>> import evenfeed as tf
        >>> int(tf.data.experimental.get_single_element(tf.data.Dataset.range(7, 8)))
        7
    """
    return dataset.get_single_element()


def get_next_as_optional(iterator: Any) -> Any:
    """Return the next element as an Optional; an older name of the iterator's `get_next_as_optional`.

    Examples:
        >>> import evenfeed as tf
        >>> bool(tf.data.experimental.get_next_as_optional(iter(tf.data.Dataset.range(0))).has_value())
        False
    """
    return iterator.get_next_as_optional()


def dense_to_ragged_batch(
    batch_size: int, drop_remainder: bool = False, row_splits_dtype: Any = dtypes.int64
) -> Callable[[Dataset], Dataset]:
    """Return a function for `Dataset.apply`; an older name of `ragged_batch`.

    Examples:
        >>> import evenfeed as tf
        >>> rows = tf.data.Dataset.from_tensor_slices(tf.ragged.constant([[1], [2, 3]]))
        >>> list(rows.apply(tf.data.experimental.dense_to_ragged_batch(2)))
        [<tf.RaggedTensor [[1], [2, 3]]>]
    """
    return lambda dataset: dataset.ragged_batch(batch_size, drop_remainder, row_splits_dtype)


def dense_to_sparse_batch(batch_size: int, row_shape: Any) -> Callable[[Dataset], Dataset]:
    """Return a function for `Dataset.apply`; an older name of `sparse_batch`.

    Examples:
        >>> import evenfeed as tf
        >>> rows = tf.data.Dataset.from_tensor_slices([[0, 0], [1, 1]])
        >>> batches = rows.apply(tf.data.experimental.dense_to_sparse_batch(2, [3]))
        >>> tf.sparse.to_dense(next(iter(batches))).tolist()
        [[0, 0, 0], [1, 1, 0]]
    """
    return lambda dataset: dataset.sparse_batch(batch_size, row_shape)


def get_structure(dataset_or_iterator: Any) -> Any:
    """Return the element spec of a dataset or an iterator; an older name of `element_spec`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.data.experimental.get_structure(tf.data.Dataset.range(3))
        TensorSpec(shape=(), dtype=tf.int64, name=None)
    """
    if not isinstance(dataset_or_iterator, (Dataset, Iterator)):
        raise TypeError(
            described(
                f"A dataset or an iterator is needed, but got {shortened(dataset_or_iterator)}.",
                fix="pass a Dataset, or what iter(dataset) returns.",
            )
        )
    return dataset_or_iterator.element_spec
