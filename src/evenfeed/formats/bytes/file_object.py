"""`tf.io.gfile.GFile`: a text or binary file object on any filesystem."""

from collections.abc import Iterator
from typing import IO, Any, Final, final

from evenfeed.core.errors import InvalidArgumentError, PermissionDeniedError
from evenfeed.formats.bytes.filesystems import naming, open_file, path_in, size_of

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
