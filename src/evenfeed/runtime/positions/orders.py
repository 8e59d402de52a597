"""Orders: which row comes at which step, as arithmetic on positions."""

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Final, NamedTuple, final

import numpy as np

from evenfeed.core.block import Positions
from evenfeed.core.errors import OutOfRangeError, ResourceExhaustedError
from evenfeed.core.randomness.random_bits import Permutation, key_of, numbers_below
from evenfeed.core.specs import INFINITE
from evenfeed.runtime.positions.drawn_ahead import DrawnAhead


class Order(ABC):
    """A sequence of positions, any stretch of which can be computed."""

    size: int

    @abstractmethod
    def at(self, steps: Positions) -> Positions:
        """Return the positions at `steps`."""

    def stretch(self, start: int, count: int) -> Positions:
        """Return the positions of `count` steps from `start` on."""
        return self.at(np.arange(start, start + count, dtype=np.int64))

    def consecutive(self, start: int, count: int) -> int | None:
        """Return the position at step `start` if those of the next `count` steps are consecutive; else None."""
        del start, count
        return None

    def of_epoch(self, epoch: int) -> "Order":
        """Return this order as it is in another round of a repeat."""
        del epoch
        return self


@final
class Forward(Order):
    """Every position once, from first to last."""

    def __init__(self, size: int) -> None:
        self.size = size

    def at(self, steps: Positions) -> Positions:
        return steps

    def consecutive(self, start: int, count: int) -> int | None:
        del count
        return start


@final
class Every(Order):
    """Every `step`-th step of another order, starting at `start`: take, skip and shard."""

    def __init__(self, inner: Order, start: int, step: int, size: int) -> None:
        self._inner = inner
        self._start = start
        self._step = step
        self.size = size

    def at(self, steps: Positions) -> Positions:
        return self._inner.at(self._start + self._step * steps)

    def stretch(self, start: int, count: int) -> Positions:
        first = self._start + self._step * start
        return self._inner.stretch(first, self._step * (count - 1) + 1)[:: self._step]

    def consecutive(self, start: int, count: int) -> int | None:
        return self._inner.consecutive(self._start + start, count) if self._step == 1 else None

    def of_epoch(self, epoch: int) -> Order:
        inner = self._inner.of_epoch(epoch)
        same = inner is self._inner
        return self if same else Every(inner, self._start, self._step, self.size)


@final
class Again(Order):
    """Another order repeated, each round as it is in that epoch."""

    def __init__(self, inner: Order, count: int) -> None:
        self._inner = inner
        self._count = count
        self._first = 0
        self._rounds: dict[int, Order] = {}
        self._length = length_of_round(inner.size)
        self.size = size_of_rounds(inner.size, count)

    def at(self, steps: Positions) -> Positions:
        rounds, within = np.divmod(steps, self._length)
        out = np.empty_like(steps)
        for number in np.unique(rounds).tolist():
            mine = rounds == number
            out[mine] = self._round(number).at(within[mine])
        return out

    @cached_property
    def _is_steady(self) -> bool:
        """Whether all rounds are the same."""
        return self._inner.of_epoch(self._first + 1) is self._inner

    def stretch(self, start: int, count: int) -> Positions:
        if count > self._length and self._is_steady:  # many short rounds
            steps = np.arange(start, start + count, dtype=np.int64)
            return self._inner.at(steps % self._length)
        parts: list[Positions] = []
        while count > 0:
            number, within = divmod(start, self._length)
            part = self._round(number).stretch(within, min(count, self._length - within))
            parts.append(part)
            start, count = start + len(part), count - len(part)
        return parts[0] if len(parts) == 1 else np.concatenate(parts)

    def consecutive(self, start: int, count: int) -> int | None:
        number, within = divmod(start, self._length)
        inside = within + count <= self._length
        return self._round(number).consecutive(within, count) if inside else None

    def of_epoch(self, epoch: int) -> Order:
        other = Again(self._inner, self._count)
        other._first = first_round(epoch, self._count)
        return other

    def _round(self, number: int) -> Order:
        if number not in self._rounds:
            self._rounds = {number: self._inner.of_epoch(self._first + number)}
        return self._rounds[number]


@final
class Shuffled(Order):
    """Another order through a shuffle buffer, with the semantics of tf.data.

    The buffer holds the next `buffer` positions. Each step draws a slot, returns its content and refills it with the
    next input. So the output of step t is the input that filled its slot last: B + t' for the last step t' that drew
    the same slot, or the slot's own number if none did. One sort of the draws of a stretch answers that for all its
    steps. When no input is left, the rest of the buffer comes in a random order.
    """

    def __init__(  # noqa: PLR0913 - keyword-only arguments
        self,
        inner: Order,
        buffer: int,
        seed: tuple[int, ...],
        *,
        reshuffle: bool,
        epoch: int = 0,
        ahead: DrawnAhead | None = None,
    ) -> None:
        self._inner = inner
        self._seed = seed
        self._reshuffle = reshuffle
        self._epoch = epoch
        self._ahead = ahead or DrawnAhead()
        self._looks_ahead = epoch > 0 and reshuffle
        self._asked = buffer
        self._buffer = min(buffer, inner.size) if inner.size != INFINITE else buffer
        self.size = inner.size
        self._key = key_of(*self._seed, epoch if self._reshuffle else 0)
        self._slots = Slots(self._key, self._buffer)
        self._rest: Permutation | None = None
        self._left_over: Positions | None = None

    def at(self, steps: Positions) -> Positions:
        """Return the positions at `steps`, which should be close together if the buffer is small."""
        if len(steps) == 0:
            return steps
        if self._buffer == self.size:
            self._look_ahead(int(steps[-1]))
            return self._inner.at(self._order_of_rest().at(steps))
        low, high = int(steps.min()), int(steps.max())
        return self.stretch(low, high - low + 1)[steps - low]

    def stretch(self, start: int, count: int) -> Positions:
        return self._inner.at(self._inputs(start, count))

    def of_epoch(self, epoch: int) -> Order:
        """Return the shuffle of another round: a different one, unless `reshuffle` is False."""
        inner = self._inner.of_epoch(epoch)
        is_alone = self._buffer == 1  # it leaves the buffer before the next comes in
        if inner is self._inner and (is_alone or not self._reshuffle):
            return self
        return Shuffled(
            inner,
            self._asked,
            self._seed,
            reshuffle=self._reshuffle,
            epoch=epoch,
            ahead=self._ahead,
        )

    def _inputs(self, start: int, count: int) -> Positions:
        filled = count if self.size == INFINITE else self.size - self._buffer - start
        if filled >= count:
            return self._slots.leaving(start, count)
        if filled <= 0:
            return self._drained(start, count)
        head = self._slots.leaving(start, filled)  # first: the rest follows from the slots after it
        return np.concatenate([head, self._drained(start + filled, count - filled)])

    def _drained(self, start: int, count: int) -> Positions:
        """Return the outputs after the input has ended: the rest of the buffer, in a random order."""
        filled = self.size - self._buffer
        places = self._order_of_rest().stretch(start - filled, count)
        if filled == 0:
            self._look_ahead(start + count)
            return places
        if self._left_over is None:
            self._left_over = self._slots.content(filled)
        return self._left_over[places]

    def _order_of_rest(self) -> Permutation:
        if self._rest is None:
            self._rest = self._ahead.permutation(_key_of_rest(self._key), self._buffer)
        return self._rest

    def _look_ahead(self, step: int) -> None:
        """Let another thread draw the order of the next round, in the second half of a round that is not the first."""
        if self._looks_ahead and 2 * step > self._buffer:
            self._looks_ahead = False
            self._ahead.begin(_key_of_rest(key_of(*self._seed, self._epoch + 1)), self._buffer)


def _key_of_rest(key: int) -> int:
    """Return the key of the order in which the rest of a buffer comes, given the key of its draws."""
    return key_of(key, 1)


_ENDLESS: Final = 1 << 64  # more rounds than any program reads
_LONGEST: Final = 1 << 62  # more steps than any program reads


def length_of_round(size: int) -> int:
    """Return the number of steps in a round; an infinite round is the only one."""
    return _LONGEST if size == INFINITE else size


def size_of_rounds(size: int, count: int) -> int:
    """Return the number of steps in `count` rounds; INFINITE if the count is negative."""
    return INFINITE if count < 0 or size == INFINITE else size * count


def first_round(epoch: int, count: int) -> int:
    """Return the number of the first of `count` rounds in an epoch; no two rounds share a number."""
    return epoch * (count if count >= 0 else _ENDLESS)


_SHORT_SORT: Final = 1 << 16
_LAST: Final = (1 << 63) - 1  # the largest position that an array can hold


class Moves(NamedTuple):
    """What some steps do to the slots: each returns the content of one slot and refills it."""

    slots: Positions  # the slot of each step
    source: Positions  # the step that filled it, if it is one of these steps; else -1
    last_slots: Positions  # the distinct slots drawn
    last: Positions  # the step that filled each of them last


@final
class Slots:
    """The slots of a shuffle buffer that is refilled at each step: which input leaves when."""

    def __init__(self, key: int, count: int) -> None:
        self._key = key
        self._count = count
        self._kind = np.uint16 if count <= _SHORT_SORT else np.int64  # NumPy sorts 16 bits by radix
        self._step = 0
        self._inputs: Positions | None = None

    def leaving(self, start: int, steps: int) -> Positions:
        """Return the inputs that leave at `steps` steps from `start` on."""
        held = self.content(start)
        moves = self.moves(start, steps)
        out = held[moves.slots]
        recent = moves.source >= 0
        out[recent] = self._count + start + moves.source[recent]
        held[moves.last_slots] = self._count + start + moves.last
        self._step = start + steps
        return out

    def moves(self, start: int, steps: int) -> "Moves":
        """Return what happens to the slots at `steps` steps from `start` on."""
        slots = self._draws(start, steps)
        order = np.argsort(slots.astype(self._kind), kind="stable")
        ordered = slots[order]
        again = np.zeros(steps, np.bool_)  # the slot was drawn before, within these steps
        np.equal(ordered[1:], ordered[:-1], out=again[1:])
        source = np.full(steps, -1, np.int64)
        source[order[again]] = order[:-1][again[1:]]
        last = np.append(~again[1:], True)
        return Moves(slots, source, ordered[last], order[last])

    def content(self, step: int) -> Positions:
        """Return the input in each slot before `step`."""
        if self._inputs is None or self._step != step:
            self._inputs = self._rebuilt(step)
            self._step = step
        return self._inputs

    def _rebuilt(self, step: int) -> Positions:
        """Walk back from `step` until every slot has been drawn: about B ln B draws."""
        if self._count + step > _LAST:
            raise OutOfRangeError(
                f"A shuffled dataset has at most {_LAST - self._count} elements, but element {step} was requested.",
                fix="skip fewer elements, or call skip before shuffle.",
            )
        try:
            held = np.full(self._count, -1, np.int64)
        except (
            MemoryError,
            ValueError,
        ):  # NumPy raises ValueError if no machine has so much memory
            raise ResourceExhaustedError(
                f"A shuffle buffer of {self._count} elements does not fit into memory.",
                fix="pass a smaller buffer_size.",
            ) from None
        missing, stop = self._count, step
        while missing and stop > 0:
            start = max(0, stop - 2 * self._count - 1024)
            slots = self._draws(start, stop - start)[::-1]
            found, where = np.unique(slots, return_index=True)
            new = held[found] < 0
            held[found[new]] = self._count + stop - 1 - where[new]
            missing, stop = missing - int(new.sum()), start
        untouched = held < 0
        held[untouched] = np.flatnonzero(untouched)
        return held

    def _draws(self, start: int, count: int) -> Positions:
        return numbers_below(self._key, start, count, self._count)
