"""Sends values to another process: small ones through a socket, large arrays in shared memory.

The memory is anonymous, so the kernel frees it when the processes end, however they end.
"""

import io
import mmap
import os
import pickle
import struct
from collections.abc import Callable, Iterable
from functools import partial
from itertools import accumulate
from typing import Any, Final, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from evenfeed.core.conversion import Array
from evenfeed.core.dtypes import DType
from evenfeed.core.lazy import socket

# From this size on, copying an array twice is faster than sending it through a socket.
_SHARED_BYTES: Final = 1 << 14

# The number that Linux gives a socket; Python has no name for this option.
_SO_COOKIE: Final = 57

_HEAD: Final = struct.Struct("<QI")  # the length of the pickle, and how many arrays are shared

# The exit code of a process whose own code has closed the connection.
CONNECTION_CLOSED: Final = 125

Counter: TypeAlias = NDArray[np.int64]
Unpickler: TypeAlias = Callable[..., pickle.Unpickler]


@final
class Link:
    """One end of a connection between two processes that take turns: a sender waits for the reply.

    So each direction can reuse one piece of memory. New memory for each value would take longer than
    everything else: 500 µs for 1 MB here, of which copying takes 30.
    """

    def __init__(self, connection: "socket.socket") -> None:
        self.connection = connection
        self._number_now = _numbered(connection)
        self._number = self._number_now()
        self._outgoing: mmap.mmap | None = None
        self._incoming: mmap.mmap | None = None

    def is_open(self) -> bool:
        """Return False if other code in this process has closed the connection, or put another file in its place."""
        try:
            return self._number_now() == self._number
        except OSError:
            return False

    def send(self, value: Any) -> int:
        """Send a value; return how many bytes it took."""
        large: list[memoryview] = []
        file = io.BytesIO()
        _Packer(file, large).dump(value)
        sizes = [part.nbytes for part in large]
        head = _HEAD.pack(file.tell(), len(sizes)) + struct.pack(f"<{len(sizes)}Q", *sizes)
        memory = self._reserve(sum(sizes))
        self._fill(large, sizes)
        if memory is not None:
            try:
                head = head[socket.send_fds(self.connection, [head], [memory]) :]
            finally:
                os.close(memory)
        self.connection.sendall(head + file.getvalue())
        return file.tell() + sum(sizes)

    def receive(self, unpickler: Unpickler = pickle.Unpickler) -> Any:
        """Return the next value.

        Raises:
            EOFError: The other process is gone.
        """
        length, count = _HEAD.unpack(self._head())
        sizes = struct.unpack(f"<{count}Q", self._exactly(8 * count))
        pickled = self._exactly(length)
        return unpickler(io.BytesIO(pickled), buffers=self._shared(sizes)).load()

    def _reserve(self, size: int) -> int | None:
        """Reserve memory for `size` bytes; return its descriptor if it is new, so that it can be sent."""
        if size <= (0 if self._outgoing is None else len(self._outgoing)):
            return None
        memory = anonymous_memory(1 << (size - 1).bit_length())
        self._outgoing = mmap.mmap(memory, 0)
        return memory

    def _fill(self, parts: Iterable[memoryview], sizes: Iterable[int]) -> None:
        for part, (start, stop) in zip(parts, _places(sizes), strict=True):
            assert self._outgoing is not None
            memoryview(self._outgoing)[start:stop] = part

    def _shared(self, sizes: Iterable[int]) -> list[bytearray]:
        """Return copies of the arrays that the other process wrote: it reuses that memory."""
        places = list(_places(sizes))
        if not places:
            return []
        assert self._incoming is not None
        view = memoryview(self._incoming)
        return [bytearray(view[start:stop]) for start, stop in places]

    def _head(self) -> bytes:
        flags = socket.MSG_CMSG_CLOEXEC
        start, memory, _, _ = socket.recv_fds(self.connection, _HEAD.size, 1, flags)
        for descriptor in memory:
            self._incoming = mmap.mmap(descriptor, 0)
            os.close(descriptor)
        if not start:
            raise EOFError
        return start + self._exactly(_HEAD.size - len(start))

    def _exactly(self, count: int) -> bytearray:
        received = bytearray(count)
        view = memoryview(received)
        while view:
            got = self.connection.recv_into(view)
            if not got:
                raise EOFError
            view = view[got:]
        return received


def _numbered(connection: "socket.socket") -> Callable[[], object]:
    """Return a function that returns the number of what is behind a connection's descriptor now."""
    number = partial(connection.getsockopt, socket.SOL_SOCKET, _SO_COOKIE, 8)
    try:
        number()
    except OSError:  # a sandbox that does not number sockets
        return partial(_file_number, connection.fileno())
    return number  # in less time, and each element asks


def _file_number(descriptor: int) -> int:
    return os.fstat(descriptor).st_ino


def unpacked(pickled: bytes, unpickler: Unpickler) -> Any:
    """Return the value of a pickle."""
    return unpickler(io.BytesIO(pickled)).load()


def counter_in(memory: int) -> Counter:
    """Return a counter in shared memory; close the memory's descriptor."""
    mapped = mmap.mmap(memory, 8)
    os.close(memory)
    return np.frombuffer(mapped, np.int64)


def anonymous_memory(size: int) -> int:
    """Return a descriptor of `size` bytes of anonymous memory."""
    memory = os.memfd_create("evenfeed")
    os.ftruncate(memory, size)
    return memory


@final
class _Packer(pickle.Pickler):
    """Pickles arrays of any dtype as raw bytes, and collects large ones for shared memory."""

    def __init__(self, file: io.BytesIO, large: list[memoryview]) -> None:
        super().__init__(file, 5, buffer_callback=self._keep)
        self._large = large

    def _keep(self, buffer: pickle.PickleBuffer) -> bool:
        """Collect a large buffer; return True if the buffer belongs in the pickle."""
        raw = buffer.raw()
        if raw.nbytes < _SHARED_BYTES:
            return True
        self._large.append(raw)
        return False

    def reducer_override(self, obj: Any) -> Any:
        if type(obj) is not np.ndarray or obj.dtype.hasobject:  # pyright: ignore[reportUnknownMemberType]
            return NotImplemented
        array: Array = obj
        # NumPy itself does not pickle bfloat16 out of band.
        content: Any = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
        given = pickle.PickleBuffer(content), array.dtype, array.shape, array.flags.writeable
        return _array, given


def _array(buffer: Any, dtype: DType, shape: tuple[int, ...], writeable: bool) -> Array:
    array = np.ndarray(shape, dtype, buffer)
    if not writeable:
        array.flags.writeable = False
    return array


def _places(sizes: Iterable[int]) -> Iterable[tuple[int, int]]:
    """Return the start and end of each part, laid out one after another."""
    ends = list(accumulate(sizes))
    return zip([0, *ends], ends, strict=False)
