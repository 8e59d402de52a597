"""Methods of `Dataset` that keep elements: `cache`, `snapshot`, `save` and `load`."""

import os
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from evenfeed.core.arguments import (
    compression_of,
    folder_of,
    path_of,
    yes_or_no,
)
from evenfeed.core.errors import UnimplementedError
from evenfeed.dataset.face import Face, checked_function, dataset_of, plan_made
from evenfeed.formats.pages.saved import load_saved
from evenfeed.formats.reader import DataFile
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


class Caching(Face):
    """Methods that keep elements in memory or in files."""

    __slots__ = ()

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

        Other programs can read the snapshot, too. A dataset with other functions or data writes its own snapshot to
        the same directory; seeds make no difference. A pass that stops early, or in which an element fails, is not
        kept.

        Args:
            path: The directory; created if it does not exist.
            compression: "GZIP" for smaller files; None or "AUTO" for memory-mapped files.
            reader_func: Receives a dataset of shards, each a dataset, and returns the dataset to read. By default
                shards are interleaved.
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
