"""What became of reading one step."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, final

from evenfeed.core.errors import DeadlineExceededError, InvalidArgumentError, UnavailableError

_WORKER_ERRORS: Final = (DeadlineExceededError, UnavailableError)


@final
@dataclass(slots=True)
class ReadStep:
    """The result of reading one step: its value or an error. `before` is the position of the step.

    `misplaced` is an error from copying to the devices. `failed` is True if there is an error instead of a
    value, and `ended` at the end of the data. `columns` are those of the step, if other workers may need to know them.
    """

    before: Any
    value: Any = None
    columns: Sequence[Any] | None = None
    error: BaseException | None = None
    misplaced: InvalidArgumentError | None = None
    failed: bool = False
    ended: bool = False

    def raised(self) -> BaseException | None:
        """Return the error, if any. Recreates it in the consumer, so that it names the user's line."""
        if self.misplaced is not None:
            return InvalidArgumentError(self.misplaced.message, fix=self.misplaced.fix)
        if isinstance(self.error, _WORKER_ERRORS):
            again = type(self.error)(self.error.message, fix=self.error.fix)
            again.__cause__ = self.error
            return again
        return self.error
