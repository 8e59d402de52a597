"""The errors: TensorFlow's class names, each also the builtin that fits.

The tree of the classes::

    EvenfeedError (also named OpError)
     ├─ AbortedError               also RuntimeError
     ├─ AlreadyExistsError         also FileExistsError
     ├─ CancelledError             also RuntimeError
     ├─ DataLossError              also OSError
     ├─ DeadlineExceededError      also TimeoutError
     ├─ FailedPreconditionError    also RuntimeError
     ├─ InternalError              also RuntimeError
     ├─ InvalidArgumentError       also ValueError
     ├─ NotFoundError              also FileNotFoundError
     ├─ OutOfRangeError            also EOFError
     ├─ PermissionDeniedError      also PermissionError
     ├─ ResourceExhaustedError     also MemoryError
     ├─ UnauthenticatedError       also PermissionError
     ├─ UnavailableError           also ConnectionError
     ├─ UnimplementedError         also NotImplementedError
     └─ UnknownError               also RuntimeError

Where TensorFlow itself raises a plain `ValueError`, `TypeError` or `RuntimeError`, so does evenfeed;
`described` gives those the same three lines: what, at, fix.
"""

import pickle
from typing import Any, Final, Self, cast

from evenfeed.core.callsite import Origin, where_called

OK: Final = 0
CANCELLED: Final = 1
UNKNOWN: Final = 2
INVALID_ARGUMENT: Final = 3
DEADLINE_EXCEEDED: Final = 4
NOT_FOUND: Final = 5
ALREADY_EXISTS: Final = 6
PERMISSION_DENIED: Final = 7
RESOURCE_EXHAUSTED: Final = 8
FAILED_PRECONDITION: Final = 9
ABORTED: Final = 10
OUT_OF_RANGE: Final = 11
UNIMPLEMENTED: Final = 12
INTERNAL: Final = 13
UNAVAILABLE: Final = 14
DATA_LOSS: Final = 15
UNAUTHENTICATED: Final = 16


def described(what: str, *, fix: str | None = None, origin: Origin | None = None) -> str:
    """Lay out an error's text: what happened, at which line of the user's, what to type instead."""
    origin = origin or where_called()
    lines = [what]
    if origin is not None:
        lines.append(f"  at:  {origin}")
    if fix is not None:
        lines.append(f"  fix: {fix}")
    return "\n".join(lines)


def shortened(value: object) -> str:
    """Return the repr of `value`, cut to what fits into an error message."""
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


class EvenfeedError(Exception):
    """The base of every error that evenfeed raises under a name of its own.

    Args:
        what: What happened, with the value that caused it. TensorFlow's own form
            `(node_def, op, message)` is understood too, also by keyword.
        op: Taken for compatibility, as `node_def` is.
        message: What happened, in TensorFlow's form.
        error_code: The code, where the class does not say it.
        node_def: Taken for compatibility.
        fix: What to type instead.
        origin: The user's line; by default the one that is running now.

    Examples:
        >>> from evenfeed import errors
        >>> error = errors.InvalidArgumentError("batch_size must be at least 1, but got 0.")
        >>> isinstance(error, ValueError), error.error_code == errors.INVALID_ARGUMENT
        (True, True)
        >>> error.message
        'batch_size must be at least 1, but got 0.'
    """

    error_code: int = UNKNOWN
    # In which file something is wrong, and at which byte, where that is known.
    file: str | None = None
    offset: int | None = None
    # Which of several records that a function was given is wrong.
    record: int | None = None

    def __init__(  # noqa: PLR0913 - TensorFlow's arguments
        self,
        what: object = "",
        op: object = None,
        message: str | None = None,
        error_code: int | None = None,
        *,
        node_def: object = None,
        fix: str | None = None,
        origin: Origin | None = None,
    ) -> None:
        self.node_def = node_def if message is None else node_def or what or None
        self.op = op
        self.message = str(what) if message is None else message
        self.fix = fix
        self.origin = origin or where_called()
        if error_code is not None:
            self.error_code = error_code
        super().__init__(described(self.message, fix=fix, origin=self.origin))

    def in_file(self, file: str, offset: int | None = None) -> Self:
        """Say in which file, and at which of its bytes, something is wrong; return the error."""
        self.file, self.offset = file, offset
        return self

    def again(self) -> Self:
        """Return the same error for another who asks: each has a traceback and notes of its own."""
        same = _rebuilt(type(self), self.args, self.__cause__)
        same.__dict__.update(
            {name: part for name, part in vars(self).items() if name != "__notes__"}
        )
        return cast("Self", same)

    def asked_for_here(self) -> Self:
        """Name the user's line that runs now: a thread that was at work for it knows none; return the error."""
        self.origin = where_called()
        self.args = (described(self.message, fix=self.fix, origin=self.origin), *self.args[1:])
        return self

    def at_record(self, record: int) -> Self:
        """Say which of several records is wrong; return the error."""
        self.record = record
        return self

    def __str__(self) -> str:
        # OSError and KeyError would format the arguments in a way of their own.
        return str(self.args[0])

    def __reduce__(self) -> tuple[Any, ...]:
        cause = self.__cause__ if _is_picklable(self.__cause__) else None
        return _rebuilt, (type(self), self.args, cause), self.__dict__


def _rebuilt(
    kind: type[EvenfeedError], args: tuple[Any, ...], cause: BaseException | None
) -> EvenfeedError:
    """Make an error again after pickling; not by __init__, which in a user's class may be another."""
    error = _builtin_base(kind).__new__(kind)
    error.args = args
    error.__cause__ = cause
    return error


def _is_picklable(cause: BaseException | None) -> bool:
    try:
        pickle.loads(pickle.dumps(cause))
    except Exception:  # noqa: BLE001 - a class of the user's may raise anything here
        return False
    return True


def _builtin_base(kind: type) -> type[BaseException]:
    """Return the builtin whose __new__ Python uses; `kind.__new__` may be one that it refuses."""
    while kind.__module__ != "builtins":
        kind = cast("type", kind.__base__)
    return kind


class AbortedError(EvenfeedError, RuntimeError):
    """The operation was given up, as when it lost a race; it may be tried again."""

    error_code = ABORTED


class AlreadyExistsError(EvenfeedError, FileExistsError):
    """What was to be created is there already."""

    error_code = ALREADY_EXISTS


class CancelledError(EvenfeedError, RuntimeError):
    """The operation was stopped by its caller."""

    error_code = CANCELLED


class DataLossError(EvenfeedError, OSError):
    """Data is lost or corrupt: a truncated file, a wrong checksum."""

    error_code = DATA_LOSS


class DeadlineExceededError(EvenfeedError, TimeoutError):
    """A wait reached its end before what it waited for."""

    error_code = DEADLINE_EXCEEDED


class FailedPreconditionError(EvenfeedError, RuntimeError):
    """The system is not in the state that the operation needs."""

    error_code = FAILED_PRECONDITION


class InternalError(EvenfeedError, RuntimeError):
    """Something that evenfeed relies on does not hold: a bug worth reporting."""

    error_code = INTERNAL


class InvalidArgumentError(EvenfeedError, ValueError):
    """An argument, or an element of the data, is wrong."""

    error_code = INVALID_ARGUMENT


class NotFoundError(EvenfeedError, FileNotFoundError):
    """A file, or another thing asked for by name, does not exist."""

    error_code = NOT_FOUND


class OutOfRangeError(EvenfeedError, EOFError):
    """The end of the data has been passed."""

    error_code = OUT_OF_RANGE


class PermissionDeniedError(EvenfeedError, PermissionError):
    """The caller is known but may not do this."""

    error_code = PERMISSION_DENIED


class ResourceExhaustedError(EvenfeedError, MemoryError):
    """Memory, disk or a quota is used up."""

    error_code = RESOURCE_EXHAUSTED


class UnauthenticatedError(EvenfeedError, PermissionError):
    """The caller has not shown who it is."""

    error_code = UNAUTHENTICATED


class UnavailableError(EvenfeedError, ConnectionError):
    """A worker or a service cannot be reached at present."""

    error_code = UNAVAILABLE


class UnimplementedError(EvenfeedError, NotImplementedError):
    """evenfeed, or the hardware below it, cannot do this."""

    error_code = UNIMPLEMENTED


class UnknownError(EvenfeedError, RuntimeError):
    """An error that says no more about itself."""

    error_code = UNKNOWN
