"""Datasets from files, and into files."""

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
from evenfeed.dataset.face import (
    Face,
    checked_function,
    dataset_of,
    plan_made,
)
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
    """Datasets from files, and into files."""

    __slots__ = ()

    @staticmethod
    def list_files(
        file_pattern: Any,
        shuffle: bool | None = None,
        seed: int | None = None,
        name: str | None = None,
    ) -> "Dataset":
        """Make a dataset of the names of files.

        Args:
            file_pattern: A pattern with `*`, `?` and `[...]`, or several. The files are looked for now.
            shuffle: False gives the names sorted. By default each pass has a random order of its own.
            seed: Makes the order the same in every run of the program, together with the global one.
            name: Taken for compatibility.

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
        names = Face.whole.from_tensor_slices(as_text(matching_paths(file_pattern, "file_pattern")))
        if len(names) == 0:
            raise InvalidArgumentError(
                f"No files matched pattern: {shortened(file_pattern)}",
                fix="check the folder and the pattern.",
            )
        mixed = shuffle is None or yes_or_no(shuffle, "shuffle")
        return names.shuffle(len(names), seed) if mixed else names

    @staticmethod
    def from_parquet(
        paths: Any,
        columns: Sequence[str] | None = None,
        filter: Any = None,  # noqa: A002 - what people call it
        fill_null: Mapping[str, Any] | None = None,
    ) -> "Dataset":
        """Make a dataset of the rows of Parquet files, as dicts of columns. It needs `evenfeed[parquet]`.

        Only what is wanted is read: `columns`, and the row groups that may have rows which `filter` leaves.
        Without a filter every row has a position: `shuffle`, `shard` and `skip` read only row groups that
        they need.

        Args:
            paths: A path or a pattern, or several. The tables at the ends of the files are read now.
            columns: The names of columns; all by default.
            filter: Which rows: `[("column", ">", 3), ...]`, or an expression of `pyarrow.compute`.
            fill_null: What stands for nulls, by the names of columns. Others are an error for their row.

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
        """Make a dataset of the rows of Arrow files, as dicts of columns. It needs `evenfeed[parquet]`.

        Feather files are Arrow files, and so are those that Hugging Face's datasets keep: streams. What is
        not compressed is mapped into memory, and numbers are views of it. Every row has a position:
        `shuffle`, `shard` and `skip` read only record batches that they need.

        Args:
            paths: A path or a pattern, or several. Their record batches are counted now.
            columns: The names of columns; all by default.
            fill_null: What stands for nulls, by the names of columns. Others are an error for their row.

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
        """Make a dataset of the records of ArrayRecord files, as bytes; it needs `evenfeed[array-record]`.

        Every record has a position: `shuffle`, `shard` and `skip` read nothing that they pass over.

        Args:
            paths: A path or a pattern, or several, on this machine.

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
        """Make a dataset of the samples in WebDataset shards: tar files, not compressed.

        Neighbours in a tar file whose names are the same up to the first dot are one sample: a dict from the
        rest of the name to the bytes, and from `__key__` to the name. Every sample has a position.

        Args:
            paths: A path or a pattern, or several.
            parts: The ends of names that are wanted, such as "jpg" and "cls"; those of the first sample by
                default.

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
        r"""Make a dataset of the lines of files, each a value of JSON.

        Args:
            paths: A path or a pattern, or several.
            output_signature: What is wanted of each line: a dict of `TensorSpec`s, perhaps nested. Text is
                `tf.string`, and a list a tensor. By default the first hundred lines tell what all have;
                whole numbers are then int64, others float64, and lists of any length.
            compression_type: "GZIP", "ZLIB", or "" and None for files as they are.

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
        """Keep the elements of the first whole pass, so that later ones do not ask for them again.

        A pass that was not read to its end is not kept. The elements that come out cannot be written to.

        Args:
            filename: Where to keep them on disk, as the beginning of file names; in memory by default.
                While one iterator writes, another that wants to is an AlreadyExistsError.
            name: Taken for compatibility.

        Examples:
            >>> import evenfeed as tf
            >>> dataset = tf.data.Dataset.range(3).cache()
            >>> [int(x) for x in dataset], [int(x) for x in dataset]
            ([0, 1, 2], [0, 1, 2])
        """
        del name
        fix = "pass where the cache is to stand on disk, or nothing to keep it in memory."
        return dataset_of(Cache(self._plan, path_of(filename, "filename", fix)))

    def snapshot(
        self,
        path: str | os.PathLike[str],
        compression: str | None = "AUTO",
        reader_func: Callable[["Dataset"], "Dataset"] | None = None,
        shard_func: Callable[..., Any] | None = None,
        name: str | None = None,
    ) -> "Dataset":
        """Write the elements of the first whole pass into a folder, and read them from there later on.

        Later passes are those of other programs too. A dataset that was made otherwise, with another
        function or other data, writes elements of its own beside them; seeds make no difference. A
        pass that ended early, or in which an element failed, is not kept.

        Args:
            path: The folder, which is made where it is not there.
            compression: "GZIP" for smaller files; None or "AUTO" for files that are mapped into memory.
            reader_func: Makes the dataset to read of a dataset of shards; by default they take turns.
            shard_func: Returns the number of the shard that an element goes to.
            name: Taken for compatibility.

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
        reading((), self.element_spec)  # what is wrong with it is said here, not after a whole pass
        made = partial(Snapshot, self._plan, folder, compression=kind, shard=shard)
        return dataset_of(made(in_order=not (reader_func or shard_func), reading=reading))

    def save(
        self,
        path: str | os.PathLike[str],
        compression: str | None = None,
        shard_func: Callable[..., Any] | None = None,
        checkpoint_args: Any = None,
    ) -> None:
        """Write all elements into a folder, for `Dataset.load`.

        What was saved there before is replaced once all is written. A program that is stopped before
        leaves it as it was.

        Args:
            path: The folder, which is made where it is not there.
            compression: "GZIP" for smaller files; else they are mapped into memory when they are read.
            shard_func: Returns the number of the shard that an element goes to; each has its file.
            checkpoint_args: Not there yet.

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
                "A saving cannot be stopped and resumed yet.", fix="leave checkpoint_args out."
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
        """Read what `save` wrote.

        Its rows can be addressed: `shuffle`, `shard`, `skip` and resume read nothing that they pass over.

        Args:
            path: The folder.
            element_spec: What the elements are; needed only where they are objects of a class of yours.
            compression: Taken for compatibility: the files know theirs.
            reader_func: Makes the dataset to read of a dataset of datasets, one for each shard; by
                default their elements come in turn.
            wait: Wait until the dataset is saved, by another program.

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
    """Return the plan that reads files: a row of each in turn, or as the user's function says."""
    if reader_func is None:
        return Files(files, spec, in_turn=len(files) > 1)
    shards = [dataset_of(Files((file,), spec)) for file in files]
    of_shards = dataset_of(Held(DatasetSpec(spec, face=Face.whole), (shards,), len(shards)))
    with never_stopping("reader_func", None):
        plan = plan_made("load", reader_func(of_shards))
    check_read(plan, spec)
    return plan


def _optional(function: Any) -> Any:
    return None if function is None else checked_function(function)
