"""Error classes: TensorFlow's names, each of which is also the matching builtin.

The class tree::

    EvenfeedError (alias: OpError)
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

evenfeed raises a plain `ValueError`, `TypeError` or `RuntimeError` where TensorFlow does. `described` gives them the
same three lines: what, at, fix.
"""

import pickle
from typing import Any, Final, Self, cast

import numpy as np

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
    """Format an error message: what happened, at which line of user code, and what to type instead."""
    origin = origin or where_called()
    lines = [what]
    if origin is not None:
        lines.append(f"  at:  {origin}")
    if fix is not None:
        lines.append(f"  fix: {fix}")
    return "\n".join(lines)


def shortened(value: object) -> str:
    """Return the repr of `value`, truncated to fit into an error message."""
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


class EvenfeedError(Exception):
    """The base class of all evenfeed errors.

    Args:
        what: What happened, with the value that caused it. TensorFlow's signature
            `(node_def, op, message)` works too, also by keyword.
        op: Accepted for compatibility, like `node_def`.
        message: What happened, in TensorFlow's signature.
        error_code: The error code, if the class does not define it.
        node_def: Accepted for compatibility.
        fix: What to type instead.
        origin: The line of user code; by default the one that is running now.

    Examples:
        >>> from evenfeed import errors
        >>> error = errors.InvalidArgumentError("batch_size must be at least 1, but got 0.")
        >>> isinstance(error, ValueError), error.error_code == errors.INVALID_ARGUMENT
        (True, True)
        >>> error.message
        'batch_size must be at least 1, but got 0.'
    """

    error_code: int = UNKNOWN
    # The file with the error and the byte offset in it, if known.
    file: str | None = None
    offset: int | None = None
    # The index of the bad record, if a function received several.
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
        """Record the file with the error, and the byte offset in it. Returns the error itself."""
        self.file, self.offset = file, offset
        return self

    def again(self) -> Self:
        """Return a copy to raise again, with its own traceback and notes."""
        same = _rebuilt(type(self), self.args, self.__cause__)
        same.__dict__.update(
            {name: part for name, part in vars(self).items() if name != "__notes__"}
        )
        return cast("Self", same)

    def asked_for_here(self) -> Self:
        """Set the origin to the line of user code that runs now. Returns the error itself.

        A background thread that raised the error has no user line on its stack.
        """
        self.origin = where_called()
        self.args = (described(self.message, fix=self.fix, origin=self.origin), *self.args[1:])
        return self

    def at_record(self, record: int) -> Self:
        """Record the index of the bad record. Returns the error itself."""
        self.record = record
        return self

    def __str__(self) -> str:
        # OSError and KeyError format their arguments differently.
        return str(self.args[0])

    def __reduce__(self) -> tuple[Any, ...]:
        cause = self.__cause__ if _is_picklable(self.__cause__) else None
        return _rebuilt, (type(self), self.args, cause), self.__dict__


def _rebuilt(
    kind: type[EvenfeedError], args: tuple[Any, ...], cause: BaseException | None
) -> EvenfeedError:
    """Rebuild an error after pickling. A user subclass may change the signature of __init__, so skip it."""
    error = _builtin_base(kind).__new__(kind)
    error.args = args
    error.__cause__ = cause
    return error


def _is_picklable(cause: BaseException | None) -> bool:
    try:
        pickle.loads(pickle.dumps(cause))
    except Exception:  # noqa: BLE001 - a user class may raise anything here
        return False
    return True


def _builtin_base(kind: type) -> type[BaseException]:
    """Return the builtin whose __new__ creates `kind`; Python may refuse `kind.__new__` itself."""
    while kind.__module__ != "builtins":
        kind = cast("type", kind.__base__)
    return kind


class AbortedError(EvenfeedError, RuntimeError):
    """The operation was aborted, for example because it lost a race. It may be retried."""

    error_code = ABORTED


class AlreadyExistsError(EvenfeedError, FileExistsError):
    """The file or object to create already exists."""

    error_code = ALREADY_EXISTS


class CancelledError(EvenfeedError, RuntimeError):
    """The caller cancelled the operation."""

    error_code = CANCELLED


class DataLossError(EvenfeedError, OSError):
    """Data is lost or corrupt: a truncated file, a wrong checksum."""

    error_code = DATA_LOSS


class DeadlineExceededError(EvenfeedError, TimeoutError):
    """The operation timed out."""

    error_code = DEADLINE_EXCEEDED


class FailedPreconditionError(EvenfeedError, RuntimeError):
    """The system is not in the state that the operation needs."""

    error_code = FAILED_PRECONDITION


class InternalError(EvenfeedError, RuntimeError):
    """An internal invariant does not hold: a bug worth reporting."""

    error_code = INTERNAL


class InvalidArgumentError(EvenfeedError, ValueError):
    """An argument or an element of the data is invalid."""

    error_code = INVALID_ARGUMENT


class NotFoundError(EvenfeedError, FileNotFoundError):
    """A file, or another object looked up by name, does not exist."""

    error_code = NOT_FOUND


class OutOfRangeError(EvenfeedError, EOFError):
    """The operation went past the end of the data."""

    error_code = OUT_OF_RANGE


class PermissionDeniedError(EvenfeedError, PermissionError):
    """The caller does not have permission for the operation."""

    error_code = PERMISSION_DENIED


class ResourceExhaustedError(EvenfeedError, MemoryError):
    """Memory, disk or a quota is used up."""

    error_code = RESOURCE_EXHAUSTED


class UnauthenticatedError(EvenfeedError, PermissionError):
    """The caller has no valid credentials."""

    error_code = UNAUTHENTICATED


class UnavailableError(EvenfeedError, ConnectionError):
    """A worker or a service cannot be reached right now."""

    error_code = UNAVAILABLE


class UnimplementedError(EvenfeedError, NotImplementedError):
    """evenfeed, or the hardware, does not support the operation."""

    error_code = UNIMPLEMENTED


class UnknownError(EvenfeedError, RuntimeError):
    """An error of unknown kind."""

    error_code = UNKNOWN


def zero_divisor() -> InvalidArgumentError:
    """Return the error of an integer that is divided by 0."""
    return InvalidArgumentError(
        "An integer is divided by 0.", fix="replace 0 first, for example with evenfeed.where."
    )


_NUMPY: Any = (np.ndarray, np.generic)
_PYTHON: Final = (float, list, tuple)


def check_divisor(x: Any, y: Any) -> None:
    """Raise if an integer is divided by an integer of the host that is 0. Lists are tensors."""
    if _has_zero(y) and (type(x) is int or _has_integers(_as_array(x))):
        raise zero_divisor()


def _has_zero(y: Any) -> bool:
    if type(y) is int:
        return y == 0
    numbers = _as_array(y)
    return isinstance(numbers, _NUMPY) and numbers.dtype.kind in "iu" and not np.all(numbers)


def _has_integers(x: Any) -> bool:
    return x.dtype.kind in "iu" and x.size > 0


def _as_array(value: Any) -> Any:
    return np.asarray(value) if type(value) in _PYTHON else value
