"""The functions of `keras.utils` that make datasets: what they need of TensorFlow, and windows of time series."""

from types import SimpleNamespace
from typing import Any, ClassVar, Final, cast, final

import numpy as np

from evenfeed import audio, data, image, io, strings
from evenfeed.core.block import Column
from evenfeed.core.conversion import Array, to_array
from evenfeed.core.errors import described
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.core.sparse.sparse_tensors import SparseTensor
from evenfeed.core.specs import TensorSpec
from evenfeed.core.tensor_types import Tensor
from evenfeed.core.traced.kernel_stages import Kernel
from evenfeed.dataset import Dataset, plan_of
from evenfeed.plan.grouping import Batch
from evenfeed.tensors import casting
from evenfeed.tensors.arrays.arranging import expand_dims, squeeze, transpose
from evenfeed.tensors.arrays.picking import one_hot
from evenfeed.tensors.creation import convert_to_tensor
from evenfeed.tensors.shaping import reshape
from evenfeed.text_ops.each_text import applied

#: TensorFlow's names that those functions use.
TENSORFLOW: Final = SimpleNamespace(
    RaggedTensor=RaggedTensor,
    SparseTensor=SparseTensor,
    Tensor=Tensor,
    audio=audio,
    available=True,
    cast=casting.cast,
    convert_to_tensor=convert_to_tensor,
    data=data,
    expand_dims=expand_dims,
    image=image,
    int64=np.dtype(np.int64),
    io=io,
    one_hot=one_hot,
    reshape=reshape,
    squeeze=squeeze,
    strings=strings,
    transpose=transpose,
)


class NoTensorFlowIO:
    """In place of tensorflow_io, which changes the rate of sounds."""

    @property
    def available(self) -> bool:
        """Not available. Keras asks if `sampling_rate` is given.

        Raises:
            ImportError: Always.
        """
        raise ImportError(
            described(
                "audio_dataset_from_directory cannot change the rate of sounds: sampling_rate needs TensorFlow.",
                fix="omit sampling_rate, and resample the files, or the sounds in dataset.map.",
            )
        )


def is_dataset(value: object) -> bool:
    """Return True for what Keras takes for a dataset of TensorFlow."""
    return isinstance(value, Dataset)


def is_batched(dataset: Any) -> bool:
    """Return True if the last step of a dataset made batches."""
    return isinstance(plan_of(dataset), Batch)


def batch_size_of(dataset: Any) -> int | None:
    """Return the batch size of a dataset; None if its last step made no batches."""
    plan = plan_of(dataset)
    return plan.batch_size if isinstance(plan, Batch) else None


@final
class Windows(Kernel):
    """Picks the rows of an array at fixed distances from a position.

    Args:
        rows: The array.
        offsets: The distances; a scalar picks one row.
    """

    stays_on_host: ClassVar[bool] = True

    def __init__(self, rows: Array, offsets: Array) -> None:
        self._rows = rows
        self._offsets = offsets

    def specs(self, *given: TensorSpec) -> list[TensorSpec]:
        del given
        return [TensorSpec((*self._offsets.shape, *self._rows.shape[1:]), self._rows.dtype)]

    def run(self, *columns: Column) -> list[Column]:
        starts = cast("Array", columns[0])
        return [self._rows[starts.reshape(-1, *(1,) * self._offsets.ndim) + self._offsets]]


def windows_of_series(  # noqa: PLR0913, PLR0917 - Keras's arguments
    data: Any,
    targets: Any,
    sequence_length: int,
    sequence_stride: int,
    sampling_rate: int,
    batch_size: int | None,
    shuffle: bool,
    seed: int | None,
    start_index: int | None,
    end_index: int | None,
) -> Dataset:
    """Return the windows of a time series, in Keras's order, each with its target if there are targets."""
    part = slice(start_index or 0, len(data) if end_index is None else end_index)
    count = part.stop - part.start - (sequence_length - 1) * sampling_rate
    if targets is not None:
        count = min(count, len(targets))
    starts = np.arange(0, count, sequence_stride)
    if shuffle:
        # Keras's order for a seed.
        seed = int(np.random.randint(1000000)) if seed is None else seed
        np.random.RandomState(seed).shuffle(starts)
    offsets = np.arange(sequence_length) * sampling_rate
    picked = Windows(to_array(data[part]), offsets)
    wanted = None if targets is None else Windows(to_array(targets[part]), np.zeros((), np.int64))

    def window(start: Any) -> Any:
        inputs = applied(picked, start)
        return inputs if wanted is None else (inputs, applied(wanted, start))

    windows = Dataset.from_tensor_slices(starts).map(window)
    if shuffle:
        windows = windows.shuffle(1024 if batch_size is None else batch_size * 8, seed=seed)
    return windows if batch_size is None else windows.batch(batch_size)


#: The functions of Keras that evenfeed replaces, by module and name.
FUNCTIONS: Final[dict[tuple[str, str], Any]] = {
    ("dataset_utils", "is_tf_dataset"): is_dataset,
    ("dataset_utils", "is_batched"): is_batched,
    ("dataset_utils", "get_batch_size"): batch_size_of,
    ("timeseries_utils", "_timeseries_dataset_tf"): windows_of_series,
}
