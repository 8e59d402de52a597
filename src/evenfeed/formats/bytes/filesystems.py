"""Local and remote filesystems: parsing path arguments, globbing, opening files, and TensorFlow's errors for them."""

import errno
import importlib
import os
import stat
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from typing import IO, Any, Final, cast, final

from evenfeed.core import dtypes
from evenfeed.core.conversion import Array, shortened, to_array
from evenfeed.core.errors import (
    AlreadyExistsError,
    EvenfeedError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    PermissionDeniedError,
    ResourceExhaustedError,
    UnimplementedError,
    UnknownError,
    described,
)
from evenfeed.core.lazy import glob, shutil
from evenfeed.formats.bytes.open_files import TOO_MANY, with_room
from evenfeed.formats.bytes.remote_files import FileVersion, RemoteFile
from evenfeed.formats.bytes.retries import retried
from evenfeed.formats.reader import bytes_column


def paths_in(value: Any, name: str) -> list[str]:
    """Return the paths in an argument: a path, a list or an array of paths. A TypeError names the argument."""
    if isinstance(value, str | bytes | os.PathLike):
        return [os.fsdecode(cast("os.PathLike[str]", value))]
    if isinstance(value, list | tuple):
        return [path for part in cast("list[Any]", value) for path in paths_in(part, name)]
    if value is not None and (array := to_array(value)).dtype == dtypes.string:
        return [os.fsdecode(path) for path in array.ravel().tolist()]
    raise TypeError(
        described(
            f"{name} must be a path or a list of paths, but got {shortened(value)}.",
            fix="pass a path, or a list of paths.",
        )
    )


def path_in(value: Any, name: str) -> str:
    """Return the single path in an argument."""
    paths = paths_in(value, name)
    if len(paths) != 1:
        raise TypeError(
            described(
                f"{name} must be a single path, but got {shortened(value)}.", fix="pass one path."
            )
        )
    return paths[0]


def as_text(paths: list[str]) -> Array:
    """Return paths as a string column."""
    return bytes_column([os.fsencode(path) for path in paths])


def matching_paths(patterns: Any, name: str) -> list[str]:
    """Return the paths that match one or more glob patterns, sorted."""
    found = [path for pattern in paths_in(patterns, name) for path in matching(pattern)]
    return sorted(found, key=os.fsencode)


def expanded_paths(value: Any, name: str) -> list[str]:
    """Return the paths in an argument with glob patterns expanded. Raises if there are none."""
    found = [path for one in paths_in(value, name) for path in matching(one) or [one]]
    if not found:
        raise InvalidArgumentError(f"{name} is empty.", fix="pass a path, or a list of paths.")
    folder = next(
        (path for path in found if not is_remote(path) and os.path.isdir(local(path))), None
    )
    if folder is not None:
        raise FailedPreconditionError(
            f"{folder} is a directory.",
            fix=f"pass the files in it, as a pattern: {os.path.join(folder, '*')!r}.",
        )
    return found


_NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def is_remote(path: str) -> bool:
    """Return True if a path has a scheme such as `gs://`; `file://` is local."""
    return "://" in path and not path.startswith("file://")


def local(path: str) -> str:
    """Return a local path without `file://`."""
    return path.removeprefix("file://")


def remote(path: str) -> tuple[Any, str]:
    """Return the fsspec filesystem of a path, and the path within it."""
    try:
        return importlib.import_module("fsspec").url_to_fs(path)
    except (ImportError, ValueError) as error:
        raise UnimplementedError(
            f"{path} cannot be reached: {error}.",
            fix="pip install 'evenfeed[remote]', and the package that fsspec names for this scheme.",
        ) from error


def remote_schemes() -> list[str]:
    """Return the schemes that fsspec knows; none if it is not installed."""
    try:
        return list(importlib.import_module("fsspec").available_protocols())
    except ImportError:
        return []


def filesystem(path: str) -> tuple[Any, str]:
    """Return the filesystem of a path, with fsspec's method names, and the path within it."""
    return remote(path) if is_remote(path) else (_LOCAL, local(path))


@final
class _Local:
    """The local filesystem, with fsspec's method names."""

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def isdir(self, path: str) -> bool:
        return os.path.isdir(path)

    def ls(self, path: str, *, detail: bool) -> list[str]:
        del detail
        return os.listdir(path)

    def mkdir(self, path: str, *, create_parents: bool) -> None:
        del create_parents
        os.mkdir(path)

    def makedirs(self, path: str, *, exist_ok: bool) -> None:
        os.makedirs(path, exist_ok=exist_ok)

    def rm_file(self, path: str) -> None:
        os.remove(path)

    def rm(self, path: str, *, recursive: bool) -> None:
        del recursive
        shutil.rmtree(path)

    def mv(self, path: str, target: str) -> None:
        os.replace(path, target)

    def info(self, path: str) -> dict[str, Any]:
        found = os.stat(path)
        kind = "directory" if stat.S_ISDIR(found.st_mode) else "file"
        return {"size": found.st_size, "mtime": found.st_mtime, "type": kind}


_LOCAL: Final = _Local()


def folder_for(path: str) -> None:
    """Create the parent directory of a file that will be written."""
    found, inner = filesystem(path)
    folder = os.path.dirname(inner)
    if folder:
        with naming(folder):
            found.makedirs(folder, exist_ok=True)


def open_file(path: str, mode: str = "rb") -> IO[bytes]:
    """Open a file in binary mode, unbuffered if it is local and only read. Errors name the file."""
    if is_remote(path) and mode == "rb":
        return cast("IO[bytes]", open_remote(path))
    with naming(path):
        if is_remote(path):
            filesystem, inner = remote(path)
            return filesystem.open(inner, mode)
        buffering = 0 if mode == "rb" else -1
        return with_room(lambda: open(local(path), mode, buffering=buffering))


def open_remote(path: str, version: FileVersion | None = None) -> RemoteFile:
    """Open a remote file for reading; raise DataLossError if it does not have this version any more."""
    with naming(path):
        return RemoteFile(path, *remote(path), version)


def size_of(path: str) -> int:
    """Return the size of a file in bytes."""
    with naming(path):
        if is_remote(path):
            filesystem, inner = remote(path)
            return int(retried(path, None, lambda: filesystem.size(inner)))
        return os.stat(local(path)).st_size


def matching(pattern: str) -> list[str]:
    """Return the paths that match a pattern with `*`, `?` and `[...]`, sorted. Includes hidden files, as TensorFlow does.

    A pattern without a directory gives paths that start with `./`, as in TensorFlow.
    """
    pattern = pattern.replace("[^", "[!")
    if is_remote(pattern):
        filesystem, inner = remote(pattern)
        with naming(pattern):
            names = retried(pattern, None, lambda: filesystem.glob(inner))
        return sorted(map(filesystem.unstrip_protocol, names))
    pattern = local(pattern)
    if not glob.has_magic(pattern):
        return [pattern] if os.path.lexists(pattern) else []
    if not os.path.dirname(pattern):
        pattern = os.path.join(os.curdir, pattern)
    return sorted(glob.glob(pattern, include_hidden=True), key=os.fsencode)


@contextmanager
def naming(path: str) -> Generator[None]:
    """Convert an OSError into TensorFlow's error class, with the file name in its text."""
    try:
        yield
    except EvenfeedError:  # some are also OSErrors, but already name the file
        raise
    except OSError as error:
        raise named(path, error) from error


def named(path: str, error: OSError) -> EvenfeedError:
    """Return TensorFlow's error for an OSError."""
    return _explained(path, error).in_file(path)


def _explained(path: str, error: OSError) -> EvenfeedError:
    match error:
        case FileNotFoundError() | NotADirectoryError():
            return NotFoundError(f"{path} does not exist.", fix="check the path of the file.")
        case IsADirectoryError():
            return FailedPreconditionError(
                f"{path} is a directory.", fix="pass the path of a file in it."
            )
        case PermissionError():
            return PermissionDeniedError(
                f"{path} cannot be opened: permission denied.",
                fix="check the permissions of the file.",
            )
        case FileExistsError():
            return AlreadyExistsError(f"{path} already exists.", fix="remove it first.")
        case OSError(errno=number) if number in TOO_MANY:
            return ResourceExhaustedError(
                f"{path} cannot be opened: the process has too many files open.",
                fix="close files that the program opened itself, or raise the limit: ulimit -n.",
            )
        case OSError(errno=number) if number in _NO_ROOM:
            return ResourceExhaustedError(
                f"{path} cannot be written: {error.strerror}.",
                fix="make room on the disk, or write to another one.",
            )
        case _:
            return UnknownError(f"{path} cannot be used: {error}.")


_MODES: Final = ("r", "w", "a", "r+", "w+", "a+")


@final
class GFile:
    r"""A file object that opens its file on first use.

    Args:
        name: Path of the file.
        mode: "r", "w" or "a"; add "+" to both read and write, and "b" for bytes instead of UTF-8 text.

    Examples:
        >>> import evenfeed as tf
        >>> folder = __import__("tempfile").TemporaryDirectory()
        >>> with tf.io.gfile.GFile(folder.name + "/a.txt", "w") as file:
        ...     file.write("one\ntwo\n")
        >>> [line for line in tf.io.gfile.GFile(folder.name + "/a.txt")]
        ['one\n', 'two\n']
        >>> folder.cleanup()
    """

    def __init__(self, name: Any, mode: str = "r") -> None:
        self._file: IO[bytes] | None = None
        self.name = path_in(name, "name")
        self.mode = mode
        self._is_bytes = "b" in mode
        self._access = mode.replace("b", "")
        if self._access not in _MODES:
            raise InvalidArgumentError(
                f"mode must be one of {', '.join(_MODES)}, optionally with b, but got {mode!r}.",
                fix='pass "r" to read, "w" to write.',
            )

    def _opened(self, *, to_read: bool) -> IO[bytes]:
        if "+" not in self._access and to_read != (self._access == "r"):
            doing = "reading" if to_read else "writing"
            raise PermissionDeniedError(
                f"{self.name} is not open for {doing}.", fix="open it in another mode."
            )
        return self._handle()

    def _handle(self) -> IO[bytes]:
        if self._file is None:
            first, plus = self._access[0], self._access[1:]
            self._file = open_file(self.name, f"{first}b{plus}")
        return self._file

    def _decoded(self, content: bytes, file: IO[bytes]) -> Any:
        if self._is_bytes:
            return content
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            place = file.tell() - len(content) + error.start
            raise InvalidArgumentError(
                f"{self.name} is not text: byte {place} is not valid UTF-8.",
                fix='pass mode="rb" to read bytes.',
            ).in_file(self.name, place) from error

    def read(self, n: int = -1) -> Any:
        """Return the next `n` bytes, or everything up to the end."""
        file = self._opened(to_read=True)
        with naming(self.name):
            return self._decoded(file.read(n), file)

    def readline(self) -> Any:
        """Return the next line with its line ending, or an empty value at the end of the file."""
        file = self._opened(to_read=True)
        with naming(self.name):
            return self._decoded(file.readline(), file)

    def readlines(self) -> list[Any]:
        """Return the remaining lines, with their line endings."""
        return list(self)

    def write(self, file_content: str | bytes) -> None:
        """Write text or bytes."""
        content = file_content.encode() if isinstance(file_content, str) else file_content
        file = self._opened(to_read=False)
        with naming(self.name):
            file.write(content)

    def seek(self, offset: int, whence: int = 0) -> None:
        """Move to a byte offset, relative to the start (0), the current position (1) or the end (2)."""
        self._handle().seek(offset, whence)

    def tell(self) -> int:
        """Return the current byte offset."""
        return self._handle().tell()

    def seekable(self) -> bool:
        """Return True: `seek` always works."""
        return True

    def size(self) -> int:
        """Return the size of the file in bytes."""
        return size_of(self.name)

    def flush(self) -> None:
        """Write buffered data to the file."""
        if self._file is not None:
            with naming(self.name):
                self._file.flush()

    def close(self) -> None:
        """Close the file."""
        file, self._file = self._file, None
        if file is not None:
            with naming(self.name):
                file.close()

    def __del__(self) -> None:
        self.close()

    def __enter__(self) -> "GFile":
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[Any]:
        while line := self.readline():
            yield line
