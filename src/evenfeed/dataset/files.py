"""Methods of `Dataset` that read files."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evenfeed.core import dtypes
from evenfeed.core.arguments import (
    compression_type_of,
    yes_or_no,
)
from evenfeed.core.conversion import shortened
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.core.specs import TensorSpec
from evenfeed.dataset.face import Face, dataset_of
from evenfeed.formats.array_records import ArrayRecordFile
from evenfeed.formats.bytes.filesystems import as_text, expanded_paths, matching_paths
from evenfeed.formats.json_lines import JsonFile, checked_spec, guessed_spec
from evenfeed.formats.tables.arrow_files import record_batches
from evenfeed.formats.tables.parquet_files import row_groups
from evenfeed.formats.webdataset import shards
from evenfeed.plan.files import Files

if TYPE_CHECKING:
    from evenfeed.dataset.dataset import Dataset


class FromFiles(Face):
    """Methods that read datasets from files."""

    __slots__ = ()

    @staticmethod
    def list_files(
        file_pattern: Any,
        shuffle: bool | None = None,
        seed: int | None = None,
        name: str | None = None,
    ) -> "Dataset":
        """Create a dataset of the names of all files that match a pattern.

        Args:
            file_pattern: A pattern with `*`, `?` and `[...]`, or several. It is matched now, not when the dataset is
                read.
            shuffle: False returns sorted names. By default each pass has a different random order.
            seed: Combined with the global seed; makes the order the same in every run.
            name: Accepted for compatibility; ignored.

        Raises:
            InvalidArgumentError: No file matches.

        Examples:
            >>> import tempfile, pathlib
            >>> import evenfeed as tf
            >>> folder = tempfile.TemporaryDirectory()
            >>> for name in ["b.txt", "a.txt", "c.csv"]:
            ...     _ = (pathlib.Path(folder.name) / name).write_bytes(b"")
            >>> files = tf.data.Dataset.list_files(folder.name + "/*.txt", shuffle=False)
            >>> [pathlib.Path(bytes(name.item()).decode()).name for name in files]
            ['a.txt', 'b.txt']
            >>> folder.cleanup()
        """
        del name
        names = Face.dataset_class.from_tensor_slices(
            as_text(matching_paths(file_pattern, "file_pattern"))
        )
        if len(names) == 0:
            raise InvalidArgumentError(
                f"No files matched pattern: {shortened(file_pattern)}",
                fix="check the directory and the pattern.",
            )
        mixed = shuffle is None or yes_or_no(shuffle, "shuffle")
        return names.shuffle(len(names), seed) if mixed else names

    @staticmethod
    def from_parquet(
        paths: Any,
        columns: Sequence[str] | None = None,
        filter: Any = None,  # noqa: A002 - the usual name
        fill_null: Mapping[str, Any] | None = None,
    ) -> "Dataset":
        """Create a dataset of the rows of Parquet files, as dicts of columns.

        Requires `evenfeed[parquet]`. Only the selected columns are read, and only row groups in which a row may pass
        `filter`. Without a filter every row has a position: `shuffle`, `shard` and `skip` read only the row groups
        that they need.

        Args:
            paths: A path or a pattern, or several. The file footers are read now.
            columns: The names of the columns to read; all by default.
            filter: The rows to keep: `[("column", ">", 3), ...]`, or a `pyarrow.compute` expression.
            fill_null: Replacement values for nulls, by column name. A row with any other null raises.

        Examples:
            >>> import tempfile
            >>> import pyarrow, pyarrow.parquet
            >>> import evenfeed as tf
            >>> folder = tempfile.TemporaryDirectory()
            >>> table = pyarrow.table({"x": [1, 2, 3], "y": ["a", "b", "c"], "z": [0, 0, 0]})
            >>> pyarrow.parquet.write_table(table, folder.name + "/table.parquet")
            >>> rows = tf.data.Dataset.from_parquet(folder.name + "/*.parquet", columns=["x", "y"])
            >>> len(rows)
            3
            >>> [(batch["x"].tolist(), batch["y"].tolist()) for batch in rows.batch(2)]
            [([1, 2], [b'a', b'b']), ([3], [b'c'])]
            >>> folder.cleanup()
        """
        spec, groups = row_groups(expanded_paths(paths, "paths"), columns, filter, fill_null)
        return dataset_of(Files(groups, spec))

    @staticmethod
    def from_arrow(
        paths: Any,
        columns: Sequence[str] | None = None,
        fill_null: Mapping[str, Any] | None = None,
    ) -> "Dataset":
        """Create a dataset of the rows of Arrow files, as dicts of columns.

        Requires `evenfeed[parquet]`. Reads the Arrow file format (Feather) and the stream format, which Hugging
        Face datasets use. Uncompressed files are memory-mapped, and numeric columns are views of them. Every
        row has a position: `shuffle`, `shard` and `skip` read only the record batches that they need.

        Args:
            paths: A path or a pattern, or several. Their record batches are counted now.
            columns: The names of the columns to read; all by default.
            fill_null: Replacement values for nulls, by column name. A row with any other null raises.

        Examples:
            >>> import tempfile
            >>> import pyarrow, pyarrow.feather
            >>> import evenfeed as tf
            >>> folder = tempfile.TemporaryDirectory()
            >>> table = pyarrow.table({"x": [1, 2, 3], "y": ["a", "b", "c"], "z": [0, 0, 0]})
            >>> pyarrow.feather.write_feather(table, folder.name + "/table.arrow")
            >>> rows = tf.data.Dataset.from_arrow(folder.name + "/*.arrow", columns=["x", "y"])
            >>> len(rows)
            3
            >>> [(batch["x"].tolist(), batch["y"].tolist()) for batch in rows.batch(2)]
            [([1, 2], [b'a', b'b']), ([3], [b'c'])]
            >>> folder.cleanup()
        """
        spec, batches = record_batches(expanded_paths(paths, "paths"), columns, fill_null)
        return dataset_of(Files(batches, spec))

    @staticmethod
    def from_array_record(paths: Any) -> "Dataset":
        """Create a dataset of the records of ArrayRecord files, as bytes. Requires `evenfeed[array-record]`.

        Every record has a position: `shuffle`, `shard` and `skip` read only the records that they need.

        Args:
            paths: A local path or pattern, or several.

        Examples:
            >>> import tempfile
            >>> from array_record.python.array_record_module import ArrayRecordWriter
            >>> import evenfeed as tf
            >>> folder = tempfile.TemporaryDirectory()
            >>> writer = ArrayRecordWriter(folder.name + "/a.array_record", "group_size:1")
            >>> for number in range(3):
            ...     _ = writer.write(b"record %d" % number)
            >>> writer.close()
            >>> records = tf.data.Dataset.from_array_record(folder.name + "/*.array_record")
            >>> len(records)
            3
            >>> list(records.skip(1).as_numpy_iterator())
            [b'record 1', b'record 2']
            >>> folder.cleanup()
        """
        files = tuple(map(ArrayRecordFile, expanded_paths(paths, "paths")))
        return dataset_of(Files(files, TensorSpec([], dtypes.string)))

    @staticmethod
    def from_webdataset(paths: Any, parts: Any = None) -> "Dataset":
        """Create a dataset of the samples in WebDataset shards: uncompressed tar files.

        Consecutive members of a tar file whose names agree up to the first dot form one sample: a dict with the bytes
        of each member under the rest of its name, and the common name under `__key__`. Every sample has a position.

        Args:
            paths: A path or a pattern, or several.
            parts: The extensions to read, such as "jpg" and "cls"; by default those of the first sample.

        Examples:
            >>> import io, tarfile, tempfile
            >>> import evenfeed as tf
            >>> folder = tempfile.TemporaryDirectory()
            >>> with tarfile.open(folder.name + "/shard-0.tar", "w") as tar:
            ...     for name, content in {"a.txt": b"one", "a.cls": b"1", "b.txt": b"two", "b.cls": b"2"}.items():
            ...         member = tarfile.TarInfo(name)
            ...         member.size = len(content)
            ...         tar.addfile(member, io.BytesIO(content))
            >>> samples = tf.data.Dataset.from_webdataset(folder.name + "/*.tar")
            >>> [(s["__key__"].item(), s["txt"].item(), s["cls"].item()) for s in samples]
            [(b'a', b'one', b'1'), (b'b', b'two', b'2')]
            >>> folder.cleanup()
        """
        spec, files = shards(expanded_paths(paths, "paths"), parts)
        return dataset_of(Files(files, spec))

    @staticmethod
    def from_json_lines(
        paths: Any, output_signature: Any = None, compression_type: str | None = None
    ) -> "Dataset":
        r"""Create a dataset of the lines of JSON Lines files, one JSON value per line.

        Args:
            paths: A path or a pattern, or several.
            output_signature: The fields to read from each line: a dict of `TensorSpec` objects, maybe nested.
                Strings are `tf.string`, and lists are tensors. By default it is inferred from the first hundred
                lines; integers become int64, other numbers float64, and lists may have any length.
            compression_type: "GZIP" or "ZLIB"; "" or None for uncompressed files.

        Examples:
            >>> import tempfile, pathlib
            >>> import evenfeed as tf
            >>> folder = tempfile.TemporaryDirectory()
            >>> path = pathlib.Path(folder.name) / "rows.jsonl"
            >>> path.write_text('{"x": 1, "tags": ["a"]}\n{"x": 2, "tags": []}\n')
            45
            >>> rows = tf.data.Dataset.from_json_lines(path)
            >>> [(int(row["x"]), row["tags"].tolist()) for row in rows]
            [(1, [b'a']), (2, [])]
            >>> wanted = {"x": tf.TensorSpec([], tf.float32)}
            >>> [b["x"].tolist() for b in tf.data.Dataset.from_json_lines(path, wanted).batch(2)]
            [[1.0, 2.0]]
            >>> folder.cleanup()
        """
        names, packed = expanded_paths(paths, "paths"), compression_type_of(compression_type)
        guessed = output_signature is None
        spec = guessed_spec(names[0], packed) if guessed else checked_spec(output_signature)
        files = tuple(JsonFile(name, packed, spec) for name in names)
        return dataset_of(Files(files, spec, as_reader=True))
