"""Writes the elements of a dataset to a TFRecord file: `tf.data.experimental.TFRecordWriter`."""

from typing import Any, final

from evenfeed.core import dtypes
from evenfeed.core.arguments import compression_type_of
from evenfeed.core.errors import described
from evenfeed.core.specs import TensorSpec
from evenfeed.dataset import Dataset
from evenfeed.formats import record_writer


@final
class TFRecordWriter:
    """Writes a dataset of records to a TFRecord file. `tf.io.TFRecordWriter` writes them one by one.

    Args:
        filename: Where; a file that is there is replaced.
        compression_type: "GZIP", "ZLIB", or "" and None for none.

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
        """Write all elements, which must be text without dimensions."""
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
                    f"Invalid dataset: its elements must be text of shape (), but are {spec}.",
                    fix="map each element to example.SerializeToString().",
                )
            )
        with record_writer.TFRecordWriter(self._path, self._compression) as writer:
            for record in dataset:
                writer.write(record)
