"""Methods that read datasets from files and write them to files."""

import os
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from evenfeed.core import dtypes
from evenfeed.core.arguments import (
    compression_of,
    compression_type_of,
    folder_of,
    path_of,
    yes_or_no,
)
from evenfeed.core.conversion import shortened
from evenfeed.core.errors import InvalidArgumentError, UnimplementedError
from evenfeed.core.specs import TensorSpec
from evenfeed.dataset.face import Face, checked_function, dataset_of, plan_made
from evenfeed.formats.array_records import ArrayRecordFile
from evenfeed.formats.bytes.filesystems import as_text, expanded_paths, matching_paths
from evenfeed.formats.json_lines import JsonFile, checked_spec, guessed_spec
from evenfeed.formats.pages.saved import load_saved
from evenfeed.formats.reader import DataFile
from evenfeed.formats.tables.arrow_files import record_batches
from evenfeed.formats.tables.parquet_files import row_groups
from evenfeed.formats.webdataset import shards
from evenfeed.plan.buffering import Cache, Snapshot
from evenfeed.plan.files import Files, check_read
from evenfeed.plan.node import Node
from evenfeed.plan.windows import DatasetSpec, Held
from evenfeed.runtime.build import build
from evenfeed.runtime.caches.saving import check_shard, save_elements
from evenfeed.runtime.fingerprint import identity
from evenfeed.runtime.functions.calls import never_stopping
from evenfeed.runtime.functions.row_function import RowFunction

if TYPE_CHECKING:
    from evenfeed.dataset.dataset import Dataset


class FromFiles(Face):
    """Methods that read datasets from files and write them to files."""

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
            file_pattern: A pattern with `*`, `?` and `[...]`, or several. It is matched now, not on reading.
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

        Requires `evenfeed[parquet]`. Only the selected columns are read, and only the row groups that may
        contain rows that pass `filter`. Without a filter every row has a position: `shuffle`, `shard` and
        `skip` read only the row groups that they need.

        Args:
            paths: A path or a pattern, or several. The file footers are read now.
            columns: The names of the columns to read; all by default.
            filter: The rows to keep: `[("column", ">", 3), ...]`, or a `pyarrow.compute` expression.
            fill_null: Replacement values for nulls, by column name. Other nulls are an error for their row.

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
            fill_null: Replacement values for nulls, by column name. Other nulls are an error for their row.

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

    def cache(self, filename: str | os.PathLike[str] = "", name: str | None = None) -> "Dataset":
        """Cache the elements of the first complete pass, and read later passes from the cache.

        A pass that is not read to its end is not cached. The arrays of cached elements are read-only.

        Args:
            filename: The prefix of the cache files; in memory by default. Two iterators cannot write the same
                files at the same time: the second raises AlreadyExistsError.
            name: Accepted for compatibility; ignored.

        Examples:
            >>> import evenfeed as tf
            >>> dataset = tf.data.Dataset.range(3).cache()
            >>> [int(x) for x in dataset], [int(x) for x in dataset]
            ([0, 1, 2], [0, 1, 2])
        """
        del name
        fix = "pass a path for the cache files, or omit filename to cache in memory."
        return dataset_of(Cache(self._plan, path_of(filename, "filename", fix)))

    def snapshot(
        self,
        path: str | os.PathLike[str],
        compression: str | None = "AUTO",
        reader_func: Callable[["Dataset"], "Dataset"] | None = None,
        shard_func: Callable[..., Any] | None = None,
        name: str | None = None,
    ) -> "Dataset":
        """Write the elements of the first complete pass to a directory, and read later passes from it.

        Other programs read the snapshot too. A dataset that differs in its functions or data writes its own snapshot
        in the same directory; seeds make no difference. A pass that stops early, or has a failing element, is not kept.

        Args:
            path: The directory; created if it does not exist.
            compression: "GZIP" for smaller files; None or "AUTO" for memory-mapped files.
            reader_func: Maps a dataset of shards, each a dataset, to the dataset to read; interleaved by default.
            shard_func: Returns the index of the shard that an element is written to.
            name: Accepted for compatibility; ignored.

        Examples:
            >>> import tempfile
            >>> import evenfeed as tf
            >>> folder = tempfile.TemporaryDirectory()
            >>> dataset = tf.data.Dataset.range(3).snapshot(folder.name)
            >>> [int(x) for x in dataset], [int(x) for x in dataset]
            ([0, 1, 2], [0, 1, 2])
            >>> folder.cleanup()
        """
        del name
        kind, shard = compression_of(compression), self._shard(shard_func)
        folder = os.path.join(folder_of(path), identity(self._plan, shard, kind))
        reading = partial(_read_plan, _optional(reader_func))
        reading(
            (), self.element_spec
        )  # Raises errors of reader_func now, not after a complete pass.
        made = partial(Snapshot, self._plan, folder, compression=kind, shard=shard)
        return dataset_of(made(in_order=not (reader_func or shard_func), reading=reading))

    def save(
        self,
        path: str | os.PathLike[str],
        compression: str | None = None,
        shard_func: Callable[..., Any] | None = None,
        checkpoint_args: Any = None,
    ) -> None:
        """Write all elements to a directory, to be read with `Dataset.load`.

        An earlier dataset in the directory stays intact until everything is written, and is then replaced.

        Args:
            path: The directory; created if it does not exist.
            compression: "GZIP" for smaller files; by default files are memory-mapped when they are read.
            shard_func: Returns the index of the shard that an element is written to. Each shard is a file.
            checkpoint_args: Not implemented.

        Raises:
            UnimplementedError: `checkpoint_args` is passed.

        Examples:
            >>> import tempfile
            >>> import evenfeed as tf
            >>> folder = tempfile.TemporaryDirectory()
            >>> tf.data.Dataset.range(10).save(folder.name)
            >>> [int(x) for x in tf.data.Dataset.load(folder.name).skip(7)]
            [7, 8, 9]
            >>> folder.cleanup()
        """
        folder, kind = folder_of(path), compression_of(compression)
        if checkpoint_args is not None:
            raise UnimplementedError(
                "save cannot be interrupted and resumed yet.", fix="omit checkpoint_args."
            )
        save_elements(self._plan, folder, kind, self._shard(shard_func), build)

    @staticmethod
    def load(
        path: str | os.PathLike[str],
        element_spec: Any = None,
        compression: str | None = None,
        reader_func: Callable[["Dataset"], "Dataset"] | None = None,
        wait: bool = False,
    ) -> "Dataset":
        """Read a dataset that `save` wrote.

        Every element has a position: `shuffle`, `shard`, `skip` and resume read only the elements they need.

        Args:
            path: The directory.
            element_spec: The spec of the elements; needed only if they contain objects of your own classes.
            compression: Accepted for compatibility; the files record their compression.
            reader_func: As for `snapshot`.
            wait: Wait until another program has saved the dataset.

        Examples:
            >>> import tempfile
            >>> import evenfeed as tf
            >>> folder = tempfile.TemporaryDirectory()
            >>> tf.data.Dataset.range(6).save(folder.name, shard_func=lambda x: x % 2)
            >>> [int(x) for x in tf.data.Dataset.load(folder.name)]
            [0, 1, 2, 3, 4, 5]
            >>> one_by_one = lambda shards: shards.flat_map(lambda shard: shard)
            >>> [int(x) for x in tf.data.Dataset.load(folder.name, reader_func=one_by_one)]
            [0, 2, 4, 1, 3, 5]
            >>> folder.cleanup()
        """
        compression_of(compression)
        saved = load_saved(folder_of(path), wait=yes_or_no(wait, "wait"))
        spec = saved.element_spec if element_spec is None else saved.spec_like(element_spec)
        return dataset_of(_read_plan(_optional(reader_func), saved.files, spec))

    def _shard(self, function: Callable[..., Any] | None) -> RowFunction | None:
        if function is None:
            return None
        return check_shard(self._traced(function, "choosing the shard of"))


def _read_plan(
    reader_func: Callable[["Dataset"], "Dataset"] | None, files: tuple[DataFile, ...], spec: Any
) -> Node:
    """Return the plan that reads the shards: with `reader_func`, or interleaved row by row."""
    if reader_func is None:
        return Files(files, spec, in_turn=len(files) > 1)
    shards = [dataset_of(Files((file,), spec)) for file in files]
    of_shards = dataset_of(Held(DatasetSpec(spec, face=Face.dataset_class), (shards,), len(shards)))
    with never_stopping("reader_func", None):
        plan = plan_made("load", reader_func(of_shards))
    check_read(plan, spec)
    return plan


def _optional(function: Any) -> Any:
    return None if function is None else checked_function(function)
