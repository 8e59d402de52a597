"""Which pass a cache or a snapshot gives in one place of a plan."""

from dataclasses import dataclass, field
from typing import Any, final


@final
@dataclass
class Keeping:
    """What a run decided for one place of a plan: to read what is below, or a pass that is kept.

    It is part of the run's state: a round that is read again is read from where it came, whatever was
    completed since.

    Attributes:
        decided: The last round for which it was decided.
        since: The first round that reads the kept pass; None while none does.
        origin: Which pass that is.
        beneath: The passes that were kept further below when the last round was decided.
    """

    decided: int = -1
    since: int | None = None
    origin: Any = None
    beneath: list[Any] = field(default_factory=list[Any])

    def kept(self, epoch: int) -> Any:
        """Return which pass a round reads; None where it reads what is below."""
        return self.origin if self.since is not None and epoch >= self.since else None
