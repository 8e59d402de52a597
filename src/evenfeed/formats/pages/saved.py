"""Saved datasets: a directory with one page file per shard, and a JSON index that lists them.

Contains the writer (`SavedWriter`) and the reader of the index (`find_saved`, `load_saved`). The index is written last,
under a temporary name, then renamed: a directory without an index is incomplete, and one with it is complete. Saving
again writes new files beside the old ones, which are deleted once the new index is in place.
"""

import json
import os
import secrets
import sys
import time
import weakref
import zlib
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, final

import numpy as np

from evenfeed.core.block import Block, Column, Positions
from evenfeed.core.errors import (
    AlreadyExistsError,
    DataLossError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
)
from evenfeed.core.lazy import fcntl
from evenfeed.core.ragged import ragged_columns
from evenfeed.core.ragged.ragged_tensors import RaggedTensor
from evenfeed.core.shapes import TensorShape
from evenfeed.core.specs import TensorSpec, TypeSpec
from evenfeed.core.structure import DATA, flatten
from evenfeed.formats.bytes.filesystems import naming
from evenfeed.formats.json_values import (
    part_from_json,
    part_to_json,
    structure_from_json,
    structure_to_json,
)
from evenfeed.formats.pages.page_files import PageWriter, WrittenPages
from evenfeed.formats.pages.page_reader import PageFile

_FORMAT: Final = "evenfeed dataset 1"
_INDEX: Final = "dataset.json"
_POLL_INTERVAL: Final = 0.2  # seconds


@final
@dataclass(frozen=True)
class Saved:
    """A directory that holds a complete dataset.

    Attributes:
        path: The directory.
        content: The content of its index, verified by checksum.
    """

    path: str
    content: Mapping[str, Any]

    @property
    def run(self) -> str:
        """The random name of the save that wrote it."""
        return self.content["run"]

    @property
    def origin(self) -> Any:
        """The pass over the dataset that it holds, if the writer recorded it; otherwise `run`."""
        return self.content.get("pass", self.run)

    @property
    def files(self) -> tuple[PageFile, ...]:
        """The page files, in the order of their shards."""
        return tuple(
            PageFile(os.path.join(self.path, name), WrittenPages(*written))
            for name, *written in self.content["files"]
        )

    @property
    def element_spec(self) -> Any:
        """The element spec of the saved dataset."""
        parts = list(map(part_from_json, self.content["parts"]))
        return structure_from_json(self.content["structure"], parts)

    def spec_like(self, asked: Any) -> Any:
        """Return the requested element_spec after checking that the elements match it."""
        if structure_to_json(asked) != self.content["structure"]:
            raise self._mismatch(asked, "their structure is different")
        leaves = flatten(asked, DATA)
        for mine, part, found in zip(
            leaves, self.content["parts"], self.content["found"], strict=True
        ):
            if not _fits(mine, part_from_json(part), found):
                raise self._mismatch(asked, f"it has {mine} where they have {found or part}")
        return asked

    def _mismatch(self, asked: Any, why: str) -> InvalidArgumentError:
        return InvalidArgumentError(
            f"The elements in {self.path} do not have the element_spec {asked}: {why}.",
            fix="omit element_spec: the directory stores it.",
        )


def _fits(asked: Any, part: TypeSpec, found: Any) -> bool:
    """Return True if all values of a component match the requested spec; an empty dataset has `found` None."""
    if not isinstance(asked, TypeSpec):
        return False
    return (
        asked.is_compatible_with(part)
        if found is None
        else part_from_json(found).is_subtype_of(asked)
    )


def find_saved(path: str) -> Saved | None:
    """Return the dataset in a directory; None if there is no complete one."""
    file = Path(path, _INDEX)
    try:
        text = file.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    try:
        index = json.loads(text)
        if index["format"] != _FORMAT:
            raise DataLossError(
                f"{file} has format {index['format']!r}, but this version of evenfeed reads {_FORMAT!r}.",
                fix="read it with the version of evenfeed that wrote it, or save the dataset again.",
            )
        if index["crc"] == _checksum(index["content"]):
            return Saved(path, index["content"])
    except (ValueError, KeyError, TypeError):
        pass
    raise DataLossError(f"{file} is damaged.", fix="save the dataset again.")


def load_saved(path: str, *, wait: bool = False) -> Saved:
    """Return the dataset in a directory; raise NotFoundError if there is no complete one.

    Args:
        path: The directory.
        wait: Wait until there is one.
    """
    while (found := find_saved(path)) is None and wait:
        time.sleep(_POLL_INTERVAL)
    if found is not None:
        return found
    if any(Path(path).glob("*/*.pages")):
        raise NotFoundError(
            f"The dataset in {path} is incomplete: it is still being saved, or its writer was interrupted.",
            fix="save it again, or wait for its writer: load(path, wait=True).",
        )
    raise NotFoundError(
        f"There is no saved dataset in {path}: {os.path.join(path, _INDEX)} does not exist.",
        fix="save one first: dataset.save(path).",
    )


def write_index(path: str, content: dict[str, Any]) -> None:
    """Write the index atomically, which completes the dataset in a directory."""
    index = Path(path, _INDEX)
    written = index.with_name(f"{_INDEX}.{content['run']}")
    data = {"format": _FORMAT, "crc": _checksum(content), "content": content}
    try:
        with naming(str(index)):
            with written.open("x") as file:
                json.dump(data, file)
                file.flush()
                os.fsync(file.fileno())
            written.replace(index)
    finally:
        written.unlink(missing_ok=True)


def _checksum(content: Any) -> int:
    return zlib.crc32(json.dumps(content, sort_keys=True).encode())


@final
class SavedWriter:
    """Writes all elements of a dataset to a directory. Only `finish` makes them a saved dataset.

    Args:
        path: The directory, which is created if it does not exist.
        spec: The element spec.
        compression: "" or "GZIP".
        origin: Identifies the pass over the dataset, as JSON data.
    """

    def __init__(self, path: str, spec: Any, compression: str, origin: Any = None) -> None:
        self._path = path
        self._specs: list[TypeSpec] = flatten(spec, DATA)
        self._compression = compression
        self._content: dict[str, Any] = {
            "run": secrets.token_hex(8),
            "structure": structure_to_json(spec),
            "parts": list(map(part_to_json, self._specs)),
            "compression": compression,
            **({} if origin is None else {"pass": origin}),
        }
        self._found: list[TensorShape | None] = [None for _ in self._specs]
        self._writers: dict[int, PageWriter] = {}
        self._folder = Path(path, self._content["run"])
        made = None if os.path.exists(path) else Path(path)
        self._make_folder()
        self._clean = weakref.finalize(self, _abandon, self._folder, self._writers, made)

    def _make_folder(self) -> None:
        try:
            with naming(self._path):
                self._folder.mkdir(parents=True)
        except (NotFoundError, AlreadyExistsError):
            raise FailedPreconditionError(
                f"{self._path} is a file, but the dataset needs a directory.",
                fix="pass the path of a directory, which is created if it does not exist.",
            ) from None

    def add(self, block: Block, shards: Positions | None = None) -> None:
        """Write elements, each to its shard in `shards`; all to shard 0 without `shards`."""
        self._found = list(map(_widened, self._found, block.columns))
        numbers = [0] if shards is None else np.unique(shards).tolist()
        for number in numbers:
            whole = shards is None or len(numbers) == 1
            rows = block if whole else block.gather(np.flatnonzero(shards == number))
            self._writer(number % 2**64).add(
                rows
            )  # TensorFlow treats -1 as the highest shard number

    def _writer(self, number: int) -> PageWriter:
        if number not in self._writers:
            path = self._folder / _name(number)
            self._writers[number] = PageWriter(path, self._specs, self._compression)
        return self._writers[number]

    def finish(self, *, replace: bool = True) -> None:
        """Complete the dataset, replacing any earlier one in the directory.

        Args:
            replace: If False, keep a dataset that another writer has finished, and discard this one.
        """
        files = [
            (f"{self._folder.name}/{_name(number)}", *self._writers[number].finish())
            for number in sorted(self._writers)
        ]
        pairs = zip(self._specs, self._found, strict=True)
        found = [part_to_json(_narrowed(*pair)) if pair[1] is not None else None for pair in pairs]
        with _locked(self._path):
            before = _found_before(self._path)
            if before is not None and not replace:
                self._clean()
                return
            write_index(self._path, self._content | {"found": found, "files": files})
        self._clean.detach()
        if before is not None:
            _remove(Path(self._path, before.run), [Path(file.path) for file in before.files])

    def discard(self) -> None:
        """Delete everything that was written."""
        self._clean()


@contextmanager
def _locked(path: str) -> Generator[None]:
    """Let no other writer replace the index of a directory, in any process.

    Two writers that replaced the same index would both delete its files, and neither the files of the other writer.
    """
    if sys.platform == "win32":  # cannot lock a directory
        yield
        return
    with naming(path):
        directory = os.open(path, os.O_RDONLY)
    try:
        with suppress(OSError):  # some file systems have no locks
            fcntl.flock(directory, fcntl.LOCK_EX)
        yield
    finally:
        os.close(directory)  # also unlocks it


def _name(number: int) -> str:
    return f"{number:08d}.pages"


def _found_before(path: str) -> Saved | None:
    with suppress(DataLossError):  # a damaged dataset is not worth keeping
        return find_saved(path)
    return None


def _abandon(folder: Path, writers: dict[int, PageWriter], made: Path | None) -> None:
    for writer in writers.values():
        writer.close()
    saved = _found_before(str(folder.parent))
    if saved is not None and saved.run == folder.name:
        return  # Ctrl-C came after the index was written, and the index lists these files
    _remove(folder, [folder / _name(number) for number in writers])
    if made is not None:
        _remove(made, [])


def _remove(folder: Path, files: Sequence[Path]) -> None:
    for file in files:
        file.unlink(missing_ok=True)
    with suppress(OSError):  # the directory is not empty
        folder.rmdir()


def _narrowed(spec: TypeSpec, shape: TensorShape | None) -> TypeSpec:
    return TensorSpec(shape, spec.dtype) if isinstance(spec, TensorSpec) else spec


def _widened(shape: TensorShape | None, column: Column) -> TensorShape | None:
    """Return the most specific shape that fits all rows so far."""
    if column is None:
        return None
    column = ragged_columns.elements(column) if isinstance(column, RaggedTensor) else column
    shapes = {item.shape for item in column} if isinstance(column, list) else {column.shape[1:]}
    for found in map(TensorShape, shapes):
        shape = found if shape is None else shape.most_specific_compatible_shape(found)
    return shape
