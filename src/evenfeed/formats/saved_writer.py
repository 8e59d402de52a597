"""Writes a dataset into a folder, one file for each shard."""

import os
import secrets
import weakref
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, final

import numpy as np

from evenfeed.core.block import Block, Column, Positions
from evenfeed.core.errors import DataLossError, FailedPreconditionError
from evenfeed.core.shapes import TensorShape
from evenfeed.core.spec_json import part_to_json, structure_to_json
from evenfeed.core.specs import TensorSpec, TypeSpec
from evenfeed.core.structure import DATA, flatten
from evenfeed.formats.page_files import PageWriter
from evenfeed.formats.saved import Saved, find_saved, write_index


@final
class SavedWriter:
    """Takes all elements of a dataset. Only `finish` makes them a saved dataset.

    Args:
        path: The folder, which is made where it is not there.
        spec: The specs of the elements.
        compression: "" or "GZIP".
        origin: Which pass over the dataset it is, as data for JSON.
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
            self._folder.mkdir(parents=True)
        except (NotADirectoryError, FileExistsError):
            raise FailedPreconditionError(
                f"{self._path} is a file, where the dataset needs a folder.",
                fix="pass the name of a folder, which is made where it is not there.",
            ) from None

    def add(self, block: Block, shards: Positions | None = None) -> None:
        """Write elements, each to the shard that it has in `shards`; all to the first without them."""
        self._found = list(map(_widened, self._found, block.columns))
        numbers = [0] if shards is None else np.unique(shards).tolist()
        for number in numbers:
            whole = shards is None or len(numbers) == 1
            rows = block if whole else block.gather(np.flatnonzero(shards == number))
            self._writer(number % 2**64).add(rows)  # TensorFlow takes -1 for the highest number

    def _writer(self, number: int) -> PageWriter:
        if number not in self._writers:
            path = self._folder / _name(number)
            self._writers[number] = PageWriter(path, self._specs, self._compression)
        return self._writers[number]

    def finish(self, *, replace: bool = True) -> None:
        """Make the folder hold these elements, and no others.

        Args:
            replace: False leaves what another writer finished meanwhile.
        """
        files = [
            (f"{self._folder.name}/{_name(number)}", *self._writers[number].finish())
            for number in sorted(self._writers)
        ]
        pairs = zip(self._specs, self._found, strict=True)
        found = [part_to_json(_narrowed(*pair)) if pair[1] is not None else None for pair in pairs]
        before = _found_before(self._path)
        if before is not None and not replace:
            self._clean()
            return
        write_index(self._path, self._content | {"found": found, "files": files})
        self._clean.detach()
        if before is not None:
            _remove(Path(self._path, before.run), [Path(file.path) for file in before.files])

    def discard(self) -> None:
        """Leave nothing of what was written."""
        self._clean()


def _name(number: int) -> str:
    return f"{number:08d}.pages"


def _found_before(path: str) -> Saved | None:
    with suppress(DataLossError):  # damaged: there is nothing to keep
        return find_saved(path)
    return None


def _abandon(folder: Path, writers: dict[int, PageWriter], made: Path | None) -> None:
    for writer in writers.values():
        writer.close()
    saved = _found_before(str(folder.parent))
    if saved is not None and saved.run == folder.name:
        return  # Ctrl-C came behind the index, which names these files
    _remove(folder, [folder / _name(number) for number in writers])
    if made is not None:
        _remove(made, [])


def _remove(folder: Path, files: Sequence[Path]) -> None:
    for file in files:
        file.unlink(missing_ok=True)
    with suppress(OSError):  # there is something else in it
        folder.rmdir()


def _narrowed(spec: TypeSpec, shape: TensorShape | None) -> TypeSpec:
    return TensorSpec(shape, spec.dtype) if isinstance(spec, TensorSpec) else spec


def _widened(shape: TensorShape | None, column: Column) -> TensorShape | None:
    """Return the narrowest shape that all rows so far have."""
    if column is None:
        return None
    shapes = {item.shape for item in column} if isinstance(column, list) else {column.shape[1:]}
    for found in map(TensorShape, shapes):
        shape = found if shape is None else shape.most_specific_compatible_shape(found)
    return shape
