"""Keeps a pass on disk: one file of raw columns, and one of JSON that says where they lie.

Numeric columns are mapped into memory when they are read. There are no pickles: a file from elsewhere can
be wrong, but runs no code.
"""

import json
import os
import secrets
import weakref
from collections.abc import Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.block import Block, Column
from evenfeed.core.conversion import Array
from evenfeed.core.errors import (
    AlreadyExistsError,
    DataLossError,
    InvalidArgumentError,
    NotFoundError,
)
from evenfeed.core.structure import DATA, flatten, outline
from evenfeed.plan.buffering import Cache
from evenfeed.runtime.caching import Chunks, Content, Recording, Store

_VERSION: Final = 1
_ALIGNMENT: Final = 64


@final
class InFiles(Store):
    """Keeps a pass in two files, for every dataset that names them."""

    def __init__(self, node: Cache) -> None:
        self._node = node
        self._data = Path(node.filename + ".cache.data")
        self._index = Path(node.filename + ".cache.json")

    def content(self) -> Content | None:
        """Return what the files hold; None where they are not there yet."""
        try:
            index = json.loads(self._index.read_text())
        except FileNotFoundError:
            return None
        except ValueError:
            raise self._damaged() from None
        self._check(index)
        if self._data.stat().st_size != index["bytes"]:
            raise self._damaged()
        size: int = index["bytes"]
        raw = np.memmap(self._data, np.uint8, "r") if size else np.zeros(0, np.uint8)
        return Content([_decoded(block, raw) for block in index["blocks"]], index["pass"])

    def record(self) -> Recording:
        """Begin to write a pass; only one writer at a time."""
        return _FileRecording(self._node, self._data, self._index)

    def _check(self, index: dict[str, Any]) -> None:
        if index.get("version") != _VERSION:
            raise self._damaged()
        if index["elements"] != _elements(self._node):
            raise InvalidArgumentError(
                f"{self._index} holds other elements: {index['elements']}, "
                f"where the dataset has {_elements(self._node)}.",
                fix="delete the file, or give the cache another name.",
                origin=self._node.origin,
            )

    def _damaged(self) -> DataLossError:
        return DataLossError(
            f"The cache {self._index} is damaged, or another version of evenfeed wrote it.",
            fix="delete it; it is then written anew.",
            origin=self._node.origin,
        )


def _elements(node: Cache) -> str:
    kinds = [
        dtypes.name_of(getattr(s, "dtype", dtypes.bool)) for s in flatten(node.element_spec, DATA)
    ]
    return f"{outline(node.element_spec, DATA)} of {', '.join(kinds)}"


@final
class _FileRecording(Recording):
    """Writes under another name, which becomes the real one when the pass is complete."""

    def __init__(self, node: Cache, data: Path, index: Path) -> None:
        self._node = node
        self._data = data
        self._index = index
        self._lock = Path(node.filename + ".cache.lock")
        self._temporary = data.with_name(f"{data.name}.{secrets.token_hex(4)}")
        self._chunks = Chunks()
        self._blocks: list[Any] = []
        self._take_lock()
        self._file: BinaryIO = self._temporary.open("wb")
        self._clean = weakref.finalize(self, _clean, self._file, self._temporary, self._lock)

    def _take_lock(self) -> None:
        try:
            _write_lock(self._lock)
        except FileNotFoundError:
            raise NotFoundError(
                f"There is no folder {self._lock.parent} to write the cache into.",
                fix="make the folder first.",
                origin=self._node.origin,
            ) from None
        except FileExistsError:
            raise AlreadyExistsError(
                f"Another iterator is writing the cache {self._node.filename}.",
                fix="let one iterator go through all elements first; "
                f"if no program writes it any more, delete {self._lock}.",
                origin=self._node.origin,
            ) from None

    def add(self, block: Block) -> None:
        if self._chunks.add(block):
            self._write(self._chunks.take())

    def finish(self, origin: Any) -> None:
        self._write(self._chunks.all())
        size = self._file.tell()
        self._file.close()
        self._temporary.replace(self._data)
        index = {
            "version": _VERSION,
            "elements": _elements(self._node),
            "pass": origin,
            "bytes": size,
            "blocks": self._blocks,
        }
        written = self._temporary.with_suffix(".json")
        written.write_text(json.dumps(index))
        written.replace(self._index)
        self._clean()

    def discard(self) -> None:
        self._clean()

    def _write(self, blocks: Sequence[Block]) -> None:
        for block in blocks:
            columns = [_encoded(column, self._file) for column in block.columns]
            self._blocks.append({"length": block.length, "columns": columns})


def _write_lock(path: Path) -> None:
    """Make the lock file, which names its process; one whose process is gone is no lock."""
    if path.exists() and not _is_alive(path.read_text()):
        path.unlink(missing_ok=True)
    with path.open("x") as file:
        file.write(str(os.getpid()))


def _is_alive(process: str) -> bool:
    if not process.isdigit():
        return True
    try:
        os.kill(int(process), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _clean(file: BinaryIO, temporary: Path, lock: Path) -> None:
    file.close()
    temporary.unlink(missing_ok=True)
    lock.unlink(missing_ok=True)


def _encoded(column: Column, file: BinaryIO) -> Any:
    """Write a column; return what JSON must say of it."""
    if column is None:
        return None
    if isinstance(column, list):
        return [_encoded(item, file) for item in column]
    said = {"dtype": dtypes.name_of(column.dtype), "shape": column.shape}
    if column.dtype != dtypes.string:
        return said | {"at": _written(file, np.ascontiguousarray(column))}
    texts = column.ravel().tolist()
    lengths = np.array([len(text) for text in texts], np.int64)
    joined = np.frombuffer(b"".join(texts), np.uint8)
    return said | {"lengths": _written(file, lengths), "at": _written(file, joined)}


def _written(file: BinaryIO, array: Array) -> int:
    at = -(-file.tell() // _ALIGNMENT) * _ALIGNMENT
    file.write(b"\0" * (at - file.tell()))
    file.write(array.tobytes())
    return at


def _decoded(block: Any, raw: Array) -> Block:
    columns = [_column(said, raw) for said in block["columns"]]
    return Block(tuple(columns), block["length"])


def _column(said: Any, raw: Array) -> Column:
    if said is None:
        return None
    if isinstance(said, list):
        return [_column(item, raw) for item in said]  # pyright: ignore[reportUnknownVariableType]
    shape, dtype = tuple(said["shape"]), dtypes.as_dtype(said["dtype"])
    count = int(np.prod(shape))
    if dtype != dtypes.string:
        return _values(raw, said["at"], dtype, count).reshape(shape)
    ends = np.cumsum(_values(raw, said["lengths"], dtypes.int64, count)).tolist()
    text = _values(raw, said["at"], dtypes.uint8, ends[-1] if ends else 0).tobytes()
    out = np.empty(count, dtypes.string)
    out[:] = [text[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    out = out.reshape(shape)
    out.flags.writeable = False
    return out


def _values(raw: Array, at: int, dtype: dtypes.DType, count: int) -> Array:
    return raw[at : at + count * dtype.itemsize].view(np.ndarray).view(dtype)
