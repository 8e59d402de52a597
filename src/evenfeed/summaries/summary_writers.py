"""Writers of summaries: the default one, its step, and when it records."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any, Final, Self, TypeAlias

import numpy as np

from evenfeed.core.conversion import Array
from evenfeed.core.errors import described
from evenfeed.formats.bytes.filesystems import path_in
from evenfeed.formats.event_files import EventFile
from evenfeed.replicas import contexts
from evenfeed.tensors.creation import Tensor, constant, convert_to_tensor, is_on_device, read
from evenfeed.tensors.host_calls import finish_calls, is_traced_tensor, when_known

# Makes a Summary message of the values that are written.
Made: TypeAlias = Callable[[Array], Any]

_step: Final[ContextVar[Any]] = ContextVar("_step", default=None)
_writer: Final[ContextVar[SummaryWriter | None]] = ContextVar("_writer", default=None)
_condition: Final[ContextVar[Any]] = ContextVar("_condition", default=True)

_MOST_WAITING: Final = 10
_SECONDS: Final = 120.0


class SummaryWriter:
    """Writes summaries to an event file, or, without one, nowhere.

    `create_file_writer` and `create_noop_writer` create it.

    Args:
        file: The event file.
    """

    def __init__(self, file: EventFile | None = None) -> None:
        self._file = file

    @contextmanager
    def as_default(self, step: Any = None) -> Generator[Self]:
        """Write to this writer in a block.

        Args:
            step: The default step in the block.

        Examples:
            >>> import tempfile
            >>> import evenfeed as tf
            >>> writer = tf.summary.create_file_writer(tempfile.mkdtemp())
            >>> with writer.as_default(step=3):
            ...     bool(tf.summary.scalar("loss", 0.5))
            True
        """
        before, step_before = _writer.set(self), _step.set(_step.get() if step is None else step)
        try:
            yield self
            self._finish()
        finally:
            _writer.reset(before)
            _step.reset(step_before)

    def set_as_default(self, step: Any = None) -> None:
        """Write to this writer from now on."""
        _writer.set(self)
        if step is not None:
            _step.set(step)

    def init(self) -> None:
        """Do nothing: the file is created with the writer."""

    def flush(self) -> None:
        """Write all events to the file."""
        self._finish()
        if self._file is not None and self._file.is_open:
            self._file.flush()

    def close(self) -> None:
        """Write all events to the file, and close it. Closing it twice is allowed."""
        finish_calls()
        if self._file is not None:
            self._file.close()

    def write(self, step: int, summary: Any) -> None:
        """Append an event."""
        if self._file is not None:
            self._file.write(step, summary)

    def _finish(self) -> None:
        if self._file is not None:
            finish_calls()


def create_file_writer(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    logdir: Any,
    max_queue: int | None = None,
    flush_millis: int | None = None,
    filename_suffix: str | None = None,
    name: str | None = None,
    experimental_trackable: bool = False,
    experimental_mesh: object = None,
) -> SummaryWriter:
    """Create a writer of an event file for TensorBoard.

    Args:
        logdir: The folder; it is created if it is missing.
        max_queue: Write events to the file once more than this many wait; by default 10.
        flush_millis: Write them to the file at the latest with the first event after this time; by default 2 minutes.
        filename_suffix: The end of the file's name; by default ".v2".
        name: Accepted for compatibility; ignored.
        experimental_trackable: Accepted for compatibility; ignored.
        experimental_mesh: Accepted for compatibility; ignored.

    Examples:
        >>> import tempfile
        >>> import evenfeed as tf
        >>> writer = tf.summary.create_file_writer(tempfile.mkdtemp())
        >>> with writer.as_default():
        ...     for step in range(3):
        ...         written = tf.summary.scalar("loss", 1 / (step + 1), step=step)
        >>> writer.close()
    """
    del name, experimental_trackable, experimental_mesh
    return SummaryWriter(
        EventFile(
            path_in(logdir, "logdir"),
            ".v2" if filename_suffix is None else filename_suffix,
            _MOST_WAITING if max_queue is None else max_queue,
            _SECONDS if flush_millis is None else flush_millis / 1000,
        )
    )


def create_noop_writer() -> SummaryWriter:
    """Create a writer that writes nothing.

    Examples:
        >>> import evenfeed as tf
        >>> with tf.summary.create_noop_writer().as_default():
        ...     written = tf.summary.scalar("loss", 0.5, step=0)
    """
    return SummaryWriter()


def flush(writer: SummaryWriter | None = None, name: str | None = None) -> None:
    """Write all events of a writer, by default the default one, to its file.

    Examples:
        >>> import evenfeed as tf
        >>> tf.summary.flush()
    """
    del name
    chosen = _writer.get() if writer is None else writer
    if chosen is not None:
        chosen.flush()


def get_step() -> Any:
    """Return the default step; None if there is none.

    Examples:
        >>> import evenfeed as tf
        >>> tf.summary.experimental.get_step() is None
        True
    """
    return _step.get()


def set_step(step: Any) -> None:
    """Set the default step: an integer, or a variable that is read each time.

    Examples:
        >>> import evenfeed as tf
        >>> tf.summary.experimental.set_step(7)
        >>> tf.summary.experimental.get_step()
        7
        >>> tf.summary.experimental.set_step(None)
    """
    _step.set(step)


@contextmanager
def record_if(condition: Any) -> Generator[None]:
    """Record summaries in a block only under a condition.

    Args:
        condition: A bool, a tensor, or a function that returns one, called for each summary. None changes nothing.

    Examples:
        >>> import evenfeed as tf
        >>> with tf.summary.record_if(False):
        ...     bool(tf.summary.should_record_summaries())
        False
    """
    before = _condition.set(_condition.get() if condition is None else condition)
    try:
        yield
    finally:
        _condition.reset(before)


def should_record_summaries() -> Tensor:
    """Return True if there is a default writer, and `record_if` lets it record.

    Examples:
        >>> import evenfeed as tf
        >>> bool(tf.summary.should_record_summaries())
        False
    """
    return constant(False) if _writer.get() is None else convert_to_tensor(_recording())


def recorded(make: Made, data: Any, step: Any) -> Tensor:
    """Write a summary of some data to the default writer. Return True if it is written.

    In a compiled function it is written each time the function runs. Of several replicas, the first one writes.

    Args:
        make: Makes the message of the data, as an array.
        data: A tensor.
        step: The step; None for the default one.

    Raises:
        ValueError: There is no step.
    """
    writer = _writer.get()
    if writer is None:
        return constant(False)
    at = _step.get() if step is None else step
    if at is None:
        raise ValueError(
            described(
                "No step set.",
                fix="pass step=, or call evenfeed.summary.experimental.set_step(step) first.",
            )
        )
    recording = _recording()
    tensors = [_readable(value) for value in (data, at, recording, _replica())]
    when_known(partial(_write, writer, make), tensors)
    return constant(True) if is_traced_tensor(recording) else convert_to_tensor(recording)


def _write(writer: SummaryWriter, make: Made, tensors: list[Any]) -> None:
    data, step, recording, replica = map(np.asarray, tensors)
    if recording and replica == 0:
        writer.write(int(step), make(data))


def _replica() -> Any:
    """Return the index of the running replica; 0 outside of replicas."""
    frame = contexts.frame()
    return 0 if frame is None or frame.context is None else frame.context.replica.index


def _recording() -> Any:
    condition = _condition.get()
    return condition() if callable(condition) else condition


def _readable(value: Any) -> Any:
    return read(value) if is_on_device(value) else value
