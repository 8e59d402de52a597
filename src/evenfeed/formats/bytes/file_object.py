"""A file as TensorFlow's `tf.io.gfile.GFile` gives it: text or bytes, on any filesystem."""

from collections.abc import Iterator
from typing import IO, Any, Final, final

from evenfeed.core.errors import InvalidArgumentError, PermissionDeniedError
from evenfeed.formats.bytes.filesystems import naming, open_file, path_in, size_of

_MODES: Final = ("r", "w", "a", "r+", "w+", "a+")


@final
class GFile:
    r"""A file that is opened when it is first used.

    Args:
        name: The path.
        mode: "r", "w" or "a", with "+" for both ways; with "b" for bytes, else for text in UTF-8.

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
        self._how = mode.replace("b", "")
        if self._how not in _MODES:
            raise InvalidArgumentError(
                f"mode must be one of {', '.join(_MODES)}, perhaps with b, but got {mode!r}.",
                fix='pass "r" to read, "w" to write.',
            )

    def _opened(self, *, to_read: bool) -> IO[bytes]:
        if "+" not in self._how and to_read != (self._how == "r"):
            doing = "reading" if to_read else "writing"
            raise PermissionDeniedError(
                f"{self.name} is not open for {doing}.", fix="open it in another mode."
            )
        return self._any()

    def _any(self) -> IO[bytes]:
        if self._file is None:
            first, plus = self._how[0], self._how[1:]
            self._file = open_file(self.name, f"{first}b{plus}")
        return self._file

    def _given(self, content: bytes, file: IO[bytes]) -> Any:
        if self._is_bytes:
            return content
        try:
            return content.decode()
        except UnicodeDecodeError as error:
            place = file.tell() - len(content) + error.start
            raise InvalidArgumentError(
                f"{self.name} is no text: the byte {place} is no UTF-8.",
                fix='pass mode="rb" to read bytes.',
            ).in_file(self.name, place) from error

    def read(self, n: int = -1) -> Any:
        """Return `n` bytes, or all that is left."""
        file = self._opened(to_read=True)
        with naming(self.name):
            return self._given(file.read(n), file)

    def readline(self) -> Any:
        """Return the next line with its end; nothing behind the last."""
        file = self._opened(to_read=True)
        with naming(self.name):
            return self._given(file.readline(), file)

    def readlines(self) -> list[Any]:
        """Return all lines that are left, with their ends."""
        return list(self)

    def write(self, file_content: str | bytes) -> None:
        """Write text or bytes."""
        content = file_content.encode() if isinstance(file_content, str) else file_content
        file = self._opened(to_read=False)
        with naming(self.name):
            file.write(content)

    def seek(self, offset: int, whence: int = 0) -> None:
        """Go to a byte, from the beginning, from here (1) or from the end (2)."""
        self._any().seek(offset, whence)

    def tell(self) -> int:
        """Return at which byte the file is."""
        return self._any().tell()

    def seekable(self) -> bool:
        """Tell that `seek` can be called."""
        return True

    def size(self) -> int:
        """Return how many bytes the file has."""
        return size_of(self.name)

    def flush(self) -> None:
        """Write out what is held back."""
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
