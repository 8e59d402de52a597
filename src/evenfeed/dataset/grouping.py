"""Methods that group elements or split them: batch, padded_batch, unbatch, window, group_by_window."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.arguments import whole_number, yes_or_no
from evenfeed.core.errors import described
from evenfeed.core.ragged.ragged_specs import RaggedTensorSpec
from evenfeed.core.ragged.row_partitions import splits_dtype
from evenfeed.core.shapes import TensorShape
from evenfeed.core.side_effects import Effects
from evenfeed.core.sparse.sparse_specs import SparseTensorSpec
from evenfeed.core.sparse.sparse_tensors import sparse_row
from evenfeed.core.specs import TensorSpec
from evenfeed.core.structure import DATA, flatten
from evenfeed.core.tensor_types import host_tensor
from evenfeed.dataset.face import Face, checked_function, dataset_of, plan_made
from evenfeed.dataset.group_specs import first_groups, spec_of_groups
from evenfeed.plan.batching import Rebatch, Unbatch, padded_batch
from evenfeed.plan.elementwise import Map
from evenfeed.plan.flattening import Buckets, GroupByWindow
from evenfeed.plan.grouping import Batch
from evenfeed.plan.node import Node
from evenfeed.plan.windows import Held, Window
from evenfeed.runtime.functions.calls import bound, never_stopping
from evenfeed.runtime.functions.row_function import RowFunction

if TYPE_CHECKING:
    from evenfeed.dataset.dataset import Dataset


_INTEGER: Final = TensorSpec([], dtypes.int64)


class Grouping(Face):
    """Methods that group elements or split them."""

    __slots__ = ()

    def batch(
        self,
        batch_size: int,
        drop_remainder: bool = False,
        num_parallel_calls: int | None = None,
        deterministic: bool | None = None,
        name: str | None = None,
    ) -> "Dataset":
        """Stack consecutive elements into batches along a new leading axis.

        Args:
            batch_size: The number of elements in a full batch, over all replicas.
            drop_remainder: Drop a short last batch, so that every batch has the same shape and XLA
                compiles once.
            num_parallel_calls: Accepted for compatibility; batches are slices of columns.
            deterministic: Accepted for compatibility; the order is always deterministic.
            name: Accepted for compatibility; ignored.

        Examples:
            >>> import evenfeed as tf
            >>> [b.tolist() for b in tf.data.Dataset.range(5).batch(2)]
            [[0, 1], [2, 3], [4]]
        """
        del deterministic, name
        size = whole_number(batch_size, "batch_size")
        drop = yes_or_no(drop_remainder, "drop_remainder")
        parallel = num_parallel_calls is not None
        return dataset_of(Batch(self._plan, size, drop_remainder=drop, parallel=parallel))

    def padded_batch(
        self,
        batch_size: int,
        padded_shapes: Any = None,
        padding_values: Any = None,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> "Dataset":
        """Stack consecutive elements into batches, padding them to a common shape.

        Args:
            batch_size: The number of elements in a full batch.
            padded_shapes: The shape to pad each component to, in the structure of an element. A
                dimension of None or -1 is padded to the longest element of the batch. By default, the
                shapes of the element spec.
            padding_values: The value to pad with: a scalar of the component's dtype, or one for each
                component. By default 0, False or the empty string.
            drop_remainder: Drop a short last batch.
            name: Accepted for compatibility; ignored.

        Examples:
            >>> import evenfeed as tf
            >>> rows = tf.data.Dataset.from_generator(
            ...     lambda: [[1], [2, 3]], output_signature=tf.TensorSpec([None], tf.int32))
            >>> [batch.tolist() for batch in rows.padded_batch(2)]
            [[[1, 0], [2, 3]]]
        """
        del name
        size = whole_number(batch_size, "batch_size")
        drop = yes_or_no(drop_remainder, "drop_remainder")
        plan = padded_batch(self._plan, size, padded_shapes, padding_values, drop_remainder=drop)
        return dataset_of(plan)

    def ragged_batch(
        self,
        batch_size: int,
        drop_remainder: bool = False,
        row_splits_dtype: dtypes.DType = dtypes.int64,
        name: str | None = None,
    ) -> "Dataset":
        """Stack consecutive elements into batches; tensors whose lengths differ become a RaggedTensor.

        Args:
            batch_size: The number of elements in a full batch.
            drop_remainder: Drop a short last batch.
            row_splits_dtype: int64 or int32.
            name: Accepted for compatibility; ignored.

        Examples:
            >>> import evenfeed as tf
            >>> spec = tf.TensorSpec([None], tf.int32)
            >>> rows = tf.data.Dataset.from_generator(lambda: [[1], [2, 3]], output_signature=spec)
            >>> list(rows.ragged_batch(2))
            [<tf.RaggedTensor [[1], [2, 3]]>]
        """
        del name
        size = whole_number(batch_size, "batch_size")
        drop = yes_or_no(drop_remainder, "drop_remainder")
        splits = splits_dtype(row_splits_dtype)
        return dataset_of(Batch(self._plan, size, drop_remainder=drop, row_splits_dtype=splits))

    def sparse_batch(self, batch_size: int, row_shape: Any, name: str | None = None) -> "Dataset":
        """Stack consecutive tensors of different lengths into a SparseTensor.

        Args:
            batch_size: The number of elements in a full batch.
            row_shape: The dense shape of a row. None stands for the longest row of a batch.
            name: Accepted for compatibility; ignored.

        Examples:
            >>> import evenfeed as tf
            >>> spec = tf.TensorSpec([None], tf.int32)
            >>> rows = tf.data.Dataset.from_generator(lambda: [[1], [2, 3]], output_signature=spec)
            >>> next(iter(rows.sparse_batch(2, [4]))).indices.tolist()
            [[0, 0], [1, 0], [1, 1]]
        """
        del name
        spec, shape = self.element_spec, TensorShape(row_shape)
        if not isinstance(spec, TensorSpec):
            raise TypeError(
                described(
                    f"sparse_batch needs elements that are one tensor, but they are {spec}.",
                    fix="select one part first: map(lambda x, y: x).",
                )
            )
        row_spec = SparseTensorSpec(shape, spec.dtype)
        traced = self._traced(
            partial(sparse_row, shape=shape), "batching", output_signature=row_spec
        )
        return dataset_of(Map(self._plan, traced)).batch(batch_size)

    def unbatch(self, name: str | None = None) -> "Dataset":
        """Split each element along its first axis.

        Examples:
            >>> import evenfeed as tf
            >>> [int(x) for x in tf.data.Dataset.from_tensors([4, 5, 6]).unbatch()]
            [4, 5, 6]
        """
        del name
        return dataset_of(Unbatch(self._plan))

    def rebatch(
        self, batch_size: Any, drop_remainder: bool = False, name: str | None = None
    ) -> "Dataset":
        """Regroup the rows of all batches into batches of another size.

        Args:
            batch_size: The number of rows in a batch, or a list of such numbers to cycle through.
            drop_remainder: Drop a short last batch.
            name: Accepted for compatibility; ignored.

        Examples:
            >>> import evenfeed as tf
            >>> [b.tolist() for b in tf.data.Dataset.range(6).batch(4).rebatch([1, 2])]
            [[0], [1, 2], [3], [4, 5]]
        """
        del name
        sizes = np.asarray(batch_size)
        if sizes.ndim > 1:
            raise ValueError(
                described(
                    f"batch_size must be a number or a list of numbers, but got {batch_size!r}.",
                    fix="pass 32, or [16, 32] for batches of both sizes in turn.",
                )
            )
        numbers = tuple(whole_number(size, "batch_size") for size in np.atleast_1d(sizes))
        drop = yes_or_no(drop_remainder, "drop_remainder")
        return dataset_of(Rebatch(self._plan, numbers, drop_remainder=drop))

    def window(
        self,
        size: int,
        shift: int | None = None,
        stride: int = 1,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> "Dataset":
        """Group elements into windows, each of which is a dataset.

        If elements have several components, each window is the same structure with a dataset for
        each component.

        Args:
            size: The number of elements in a window.
            shift: The number of elements between the starts of two windows; `size` by default.
            stride: The distance between the elements of a window.
            drop_remainder: Drop windows with fewer than `size` elements.
            name: Accepted for compatibility; ignored.

        Examples:
            >>> import evenfeed as tf
            >>> windows = tf.data.Dataset.range(4).window(3, shift=1, drop_remainder=True)
            >>> [[int(x) for x in window] for window in windows]
            [[0, 1, 2], [1, 2, 3]]
        """
        del name
        length, step = whole_number(size, "size"), whole_number(stride, "stride")
        by = length if shift is None else whole_number(shift, "shift")
        drop = yes_or_no(drop_remainder, "drop_remainder")
        return dataset_of(
            Window(self._plan, length, by, step, drop_remainder=drop, face=Face.dataset_class)
        )

    def group_by_window(
        self,
        key_func: Callable[..., Any],
        reduce_func: Callable[[Any, "Dataset"], "Dataset"],
        window_size: int | None = None,
        window_size_func: Callable[[Any], Any] | None = None,
        name: str | None = None,
    ) -> "Dataset":
        """Group elements by key, and map each full group to a dataset.

        Args:
            key_func: Returns the key of an element, an integer.
            reduce_func: Receives a key and the dataset of a group; returns a Dataset, whose elements become elements
                of the result.
            window_size: The number of elements in a full group.
            window_size_func: Receives a key; returns the number of elements in a full group.
            name: Accepted for compatibility; ignored.

        Examples:
            >>> import evenfeed as tf
            >>> dataset = tf.data.Dataset.range(6).group_by_window(
            ...     lambda x: x % 2, lambda key, group: group.batch(3), window_size=3)
            >>> [batch.tolist() for batch in dataset]
            [[0, 2, 4], [1, 3, 5]]
        """
        del name
        if (window_size is None) == (window_size_func is None):
            raise ValueError(
                described(
                    "Exactly one of window_size and window_size_func must be passed.",
                    fix="pass the number of elements in a group, or a function of the key.",
                )
            )
        reduced = partial(_reduced, checked_function(reduce_func))
        fixed = 0 if window_size is None else whole_number(window_size, "window_size")
        size = partial(_size_of_group, fixed, window_size_func)
        spec = self.element_spec
        empty = Held(spec, tuple(None for _ in flatten(spec, DATA)), 0)
        effects = Effects()
        with never_stopping("reduce_func", None):
            result = spec_of_groups(reduced, empty, first_groups(self._plan, fixed), effects)
        key = self._traced(key_func, "finding the key of", returns=_INTEGER)
        _check_key(key)
        plan = GroupByWindow(self._plan, key, reduced, size, result, effects=effects)
        return dataset_of(plan)

    def bucket_by_sequence_length(
        self,
        element_length_func: Callable[..., Any],
        bucket_boundaries: Sequence[int],
        bucket_batch_sizes: Sequence[int],
        padded_shapes: Any = None,
        padding_values: Any = None,
        pad_to_bucket_boundary: bool = False,
        no_padding: bool = False,
        drop_remainder: bool = False,
        name: str | None = None,
    ) -> "Dataset":
        """Batch sequences of similar length together, and pad each batch to its longest sequence.

        Args:
            element_length_func: Returns the length of an element.
            bucket_boundaries: The upper boundaries of the buckets (exclusive), in increasing order.
            bucket_batch_sizes: The batch size of each bucket, one more than there are boundaries.
            padded_shapes: As for `padded_batch`.
            padding_values: As for `padded_batch`.
            pad_to_bucket_boundary: Pad to one less than the bucket's boundary, for fixed shapes.
            no_padding: Do not pad; all elements of a bucket must have the same shape.
            drop_remainder: Drop short batches.
            name: Accepted for compatibility; ignored.

        Examples:
            >>> import evenfeed as tf
            >>> rows = tf.data.Dataset.from_generator(
            ...     lambda: [[1], [2, 3, 4], [5]], output_signature=tf.TensorSpec([None], tf.int32))
            >>> buckets = rows.bucket_by_sequence_length(lambda row: tf.shape(row)[0], [2], [2, 2])
            >>> [batch.tolist() for batch in buckets]
            [[[1], [5]], [[2, 3, 4]]]
        """
        del name
        buckets = Buckets(
            tuple(bucket_boundaries), tuple(bucket_batch_sizes), to_boundary=pad_to_bucket_boundary
        )

        padding = None if no_padding else (padded_shapes, padding_values, self.element_spec)
        return self.group_by_window(
            bound(partial(_bucket_of, buckets), checked_function(element_length_func)),
            partial(_batched, buckets, padding, drop_remainder),
            window_size_func=partial(_size_of_bucket, buckets),
        )


def _check_key(key: RowFunction) -> None:
    """Raise TypeError for a key that is a Python value but no integer; GroupByWindow checks other keys."""
    spec, traced = key.output_spec, key.traced
    is_constant = traced is not None and traced[0].is_constant
    is_other = isinstance(spec, TensorSpec) and spec.dtype.kind not in "iu"
    if isinstance(spec, (dict, RaggedTensorSpec)) or (is_constant and is_other):
        raise TypeError(
            described(
                f"key_func must return a scalar integer, but returns {spec}.",
                fix="return an integer, such as tf.cast(key, tf.int64).",
                origin=key.origin,
            )
        )


def _reduced(reduce_func: Callable[..., Any], key: int, group: Node) -> Node:
    return plan_made("group_by_window", reduce_func(host_tensor(np.int64(key)), dataset_of(group)))


def _size_of_group(window_size: int, window_size_func: Callable[..., Any] | None, key: int) -> int:
    if window_size_func is None:
        return window_size
    return whole_number(
        window_size_func(host_tensor(np.int64(key))), "the result of window_size_func"
    )


def _bucket_of(buckets: Buckets, length_func: Callable[..., Any], *element: Any) -> Any:
    return np.int64(buckets.of_length(int(length_func(*element))))


def _size_of_bucket(buckets: Buckets, bucket: Any) -> int:
    return buckets.batch_sizes[int(bucket)]


def _batched(
    buckets: Buckets, padding: tuple[Any, ...] | None, drop: bool, bucket: Any, group: "Dataset"
) -> "Dataset":
    size = _size_of_bucket(buckets, bucket)
    if padding is None:
        return group.batch(size, drop)
    shapes, values, spec = padding
    return group.padded_batch(size, buckets.padded_shapes(int(bucket), shapes, spec), values, drop)
