"""The operator of repeat for elements without positions."""

from collections.abc import Callable
from typing import Final, final

import numpy as np

from evenfeed.core.block import Block, concatenated
from evenfeed.runtime.operator import Operator, State

# A round of fewer bytes is kept, if all rounds are alike. Longer ones take much longer than their start and end.
_KEPT_BYTES: Final = 1 << 18


@final
class PlayAgain(Operator):
    """Restarts its child each time it ends.

    If all rounds are alike, one that is short is kept: rounds that are asked for as a whole are copies of it.

    Args:
        start: Returns the operator of a round.
        count: The number of rounds; negative if they do not end.
        is_steady: Whether all rounds are alike, as long as it is unobservable how they are read.
    """

    def __init__(
        self, start: Callable[[int], Operator], count: int, *, is_steady: bool = False
    ) -> None:
        self._start = start
        self._count = count
        self._round = 0
        self._found = False
        self._child: Operator | None = start(0) if count else None
        self._may_keep = is_steady
        # The Blocks of this round so far; None if it is not kept.
        self._seen: list[Block] | None = [] if is_steady else None
        self._kept: Block | None = None

    @property
    def reads_freely(self) -> bool:
        """All rounds are alike."""
        return self._child is not None and self._child.reads_freely

    @property
    def hides_reads(self) -> bool:
        """True if it is unobservable in this round: a read ends with the round."""
        child = self._child  # a thread that reads ahead may start the next round
        return child is not None and child.hides_reads

    def read(self, most: int) -> Block | None:
        while self._child is not None:
            if (copies := self._copies(most)) is not None:
                return copies
            found, self._found = self._found, True  # an element that fails counts, too
            try:
                block = self._child.read(most)
            except Exception:
                self._seen = None
                raise
            if block is not None:
                self._keep(self._child, block)
                return block
            self._found = found
            if self._seen:
                self._kept, self._may_keep = concatenated(self._seen).copy(), False
            self._next_round()
        return None

    def _keep(self, child: Operator, block: Block) -> None:
        """Keep a part of the round, if it is short and reading less of it is unobservable."""
        if self._seen is not None:
            self._seen.append(block)
            if not child.reads_freely or sum(one.nbytes for one in self._seen) > _KEPT_BYTES:
                self._may_keep, self._seen = False, None

    def _copies(self, most: int) -> Block | None:
        """Return whole rounds from the start of one on; None if they must be read. The last one is always read."""
        if self._kept is None or self._found:
            return None
        length = self._kept.length
        left = most if self._count < 0 else self._count - self._round - 1
        rounds = min(most // length, left)
        if rounds < 1:
            return None
        self._round += rounds
        return self._kept.gather(np.tile(np.arange(length), rounds))

    def _next_round(self) -> None:
        self.close()
        self._round += 1
        # Without a count, stop after an empty round: the next ones would be empty too, without end.
        last = not self._found if self._count < 0 else self._round == self._count
        self._child, self._found = (None if last else self._start(self._round)), False
        self._seen = [] if self._may_keep else None

    def state(self) -> State:
        return None if self._child is None else [self._round, self._found, self._child.state()]

    def restore(self, state: State) -> None:
        self.close()
        self._child = self._seen = None
        if state is not None:
            self._round, self._found, inner = state
            self._child = self._start(self._round)
            self._child.restore(inner)

    def children(self) -> tuple[Operator, ...]:
        return () if self._child is None else (self._child,)
