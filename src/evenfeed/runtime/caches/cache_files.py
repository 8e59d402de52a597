"""Stores the cached elements of a pass in a file."""

import gc
import os
import secrets
import weakref
from pathlib import Path
from typing import Any, final

from evenfeed.core import dtypes
from evenfeed.core.block import Block, read_only
from evenfeed.core.errors import (
    AlreadyExistsError,
    InvalidArgumentError,
    NotFoundError,
)
from evenfeed.core.structure import DATA, flatten, outline
from evenfeed.formats.bytes.filesystems import naming
from evenfeed.formats.pages.page_files import PageWriter
from evenfeed.formats.pages.page_reader import PageReader
from evenfeed.plan.buffering import Cache
from evenfeed.runtime.caches.cache import Content, InMemory, Recording, Store
from evenfeed.runtime.live_state import memory_of


def store_of(node: Cache) -> Store:
    """Return the store of a cache: a file if it has a name, memory otherwise."""
    return InFiles(node) if node.filename else InMemory(memory_of(node))


@final
class InFiles(Store):
    """Stores a pass in a file, for all datasets that name it."""

    def __init__(self, node: Cache) -> None:
        self._node = node
        self._path = Path(node.filename + ".cache")

    @property
    def is_complete(self) -> bool:
        """Whether the file holds a complete pass."""
        return self._path.exists()

    def content(self) -> Content | None:
        try:
            reader = PageReader(self._path)
        except NotFoundError:
            return None
        self._check(reader.about["elements"])
        return _FileContent(reader)

    def record(self) -> Recording:
        """Start to write a pass. Only one writer is allowed at a time."""
        return _FileRecording(self._node, self._path)

    def _check(self, elements: str) -> None:
        if elements != _elements(self._node):
            raise InvalidArgumentError(
                f"The cache file {self._path} holds other elements than the dataset: {elements}, "
                f"not {_elements(self._node)}.",
                fix="delete the file, or pass another filename to cache().",
                origin=self._node.origin,
            )


def _elements(node: Cache) -> str:
    kinds = [
        dtypes.name_of(getattr(s, "dtype", dtypes.bool)) for s in flatten(node.element_spec, DATA)
    ]
    return f"{outline(node.element_spec, DATA)} of {', '.join(kinds)}"


@final
class _FileContent(Content):
    def __init__(self, reader: PageReader) -> None:
        about = reader.about
        super().__init__(about["pass"], is_clean=about.get("clean", not about.get("failed")))
        self._reader = reader

    def read(self, start: int, most: int) -> Block | None:
        block = self._reader.read(start, most)
        return None if block is None else read_only(block)

    def behind(self, start: int) -> int:
        return self._reader.behind(start)


@final
class _FileRecording(Recording):
    """Writes a temporary file, and renames it when the pass is complete."""

    def __init__(self, node: Cache, path: Path) -> None:
        self._node = node
        self._path = path
        self._lock = _LockFile(path.with_name(path.name + ".lock"))
        self._temporary = path.with_name(f"{path.name}.{secrets.token_hex(4)}")
        try:
            self._take_lock()
            self._writer = PageWriter(self._temporary, flatten(node.element_spec, DATA))
            self._clean = weakref.finalize(self, _clean, self._writer, self._temporary, self._lock)
        except AlreadyExistsError:  # another process has the lock
            raise
        except BaseException:
            self._temporary.unlink(missing_ok=True)
            self._lock.release()
            raise

    def _take_lock(self) -> None:
        try:
            with naming(str(self._lock.path)):
                self._lock.take()
        except FileNotFoundError:
            raise NotFoundError(
                f"There is no directory {self._path.parent} to write the cache to.",
                fix="create the directory first.",
                origin=self._node.origin,
            ) from None
        except FileExistsError:
            raise AlreadyExistsError(
                f"Another iterator is writing the cache {self._node.filename}.",
                fix="let one iterator read all elements first; "
                f"if no program is writing the cache any more, delete {self._lock.path}.",
                origin=self._node.origin,
            ) from None

    def add(self, block: Block) -> None:
        self._writer.add(block)

    def finish(self, origin: Any, *, is_clean: bool) -> None:
        about = {"elements": _elements(self._node), "pass": origin, "clean": is_clean}
        self._writer.finish(about)
        with naming(str(self._path)):
            self._temporary.replace(self._path)
        self._clean()

    def discard(self) -> None:
        self._clean()


@final
class _LockFile:
    """A lock file with the pid of the process that writes a cache."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._ours = f"{os.getpid()} {secrets.token_hex(4)}"

    def take(self) -> None:
        """Create the file, unless a live process has. Ctrl-C leaves no file behind.

        Raises:
            FileExistsError: Another process is writing.
        """
        holder = self._text().partition(" ")[0]
        if holder == str(os.getpid()):
            # An abandoned iterator may have it: after an error, tracebacks keep iterators alive until then.
            gc.collect()
        elif self.path.exists() and not _is_alive(holder):
            self.path.unlink(missing_ok=True)
        try:
            with self.path.open("x") as file:
                file.write(self._ours)
        except OSError:
            raise
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Remove the file if it is ours: it has our text, or was created and is still empty."""
        if self._text() in ("", self._ours):
            self.path.unlink(missing_ok=True)

    def _text(self) -> str:
        try:
            return self.path.read_text()
        except FileNotFoundError:
            return "none"


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


def _clean(writer: PageWriter, temporary: Path, lock: _LockFile) -> None:
    writer.close()
    temporary.unlink(missing_ok=True)
    lock.release()
