"""Writes TensorBoard's event files, with the bytes that TensorFlow writes."""

import os
import time
import weakref
from collections.abc import Iterator
from itertools import count
from threading import Lock
from typing import Any, Final, final

from evenfeed.core.errors import described
from evenfeed.core.lazy import socket
from evenfeed.formats.bytes.filesystems import folder_for
from evenfeed.formats.example.example_protos import message_class
from evenfeed.formats.tfrecord.record_writer import TFRecordWriter

_VERSION: Final = "brain.Event:2"
_WRITER: Final = "tensorflow.core.util.events_writer"
_numbers: Final[Iterator[int]] = count()


@final
class EventFile:
    """An event file in a folder, which TensorBoard reads while it is written.

    Args:
        folder: The folder; it is created if it is missing.
        suffix: The end of the file's name.
        most: Write events to the file once this many wait.
        seconds: Write them to the file at the latest with the first event after this time.
    """

    def __init__(self, folder: str, suffix: str, most: int, seconds: float) -> None:
        name = f"events.out.tfevents.{int(time.time())}.{socket.gethostname()}.{os.getpid()}.{next(_numbers)}{suffix}"
        self.path = os.path.join(folder, name)
        folder_for(self.path)
        self._most, self._seconds = most, seconds
        self._waiting, self._flushed = 0, time.monotonic()
        self._lock = Lock()  # compiled functions write from other threads
        self._records = TFRecordWriter(self.path)
        # Events of a program that does not close the file are kept when it ends.
        self._close = weakref.finalize(self, self._records.close)
        head = message_class("Event")(wall_time=time.time(), file_version=_VERSION)
        head.source_metadata.writer = _WRITER
        self._records.write(head.SerializeToString())
        self._records.flush()

    @property
    def is_open(self) -> bool:
        """True until `close` is called."""
        return self._close.alive

    def write(self, step: int, summary: Any) -> None:
        """Append an event with a Summary message."""
        event = message_class("Event")(wall_time=time.time(), step=step, summary=summary)
        with self._lock:
            self._check_open()
            self._records.write(event.SerializeToString())
            self._waiting += 1
            if self._waiting > self._most or time.monotonic() - self._flushed > self._seconds:
                self._flush()

    def flush(self) -> None:
        """Write all events to the file."""
        with self._lock:
            self._check_open()
            self._flush()

    def close(self) -> None:
        """Write all events to the file, and close it."""
        with self._lock:
            self._close()

    def _flush(self) -> None:
        self._records.flush()
        self._waiting, self._flushed = 0, time.monotonic()

    def _check_open(self) -> None:
        if not self.is_open:
            raise RuntimeError(
                described(
                    f"SummaryWriter is already closed: {self.path}.",
                    fix="close it after the last summary, or create another writer.",
                )
            )
