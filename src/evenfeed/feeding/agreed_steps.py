"""How workers tell each other what they have, ahead of the steps and off the devices."""

import json
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final, NamedTuple, Protocol, TypeAlias, final

import numpy as np

from evenfeed.core import dtypes
from evenfeed.core.batch_split import Flow, Share
from evenfeed.core.block import without_rows
from evenfeed.core.conversion import Array, shortened
from evenfeed.core.errors import AbortedError
from evenfeed.core.specs import TensorSpec, TypeSpec
from evenfeed.core.structure import DATA, flatten
from evenfeed.feeding.host_steps import Column, HostSteps, Pieces, pieces_of
from evenfeed.plan.node import Node


class Agreement(Protocol):
    """A way for all workers to hear what each says.

    All must ask for the same keys. A key is used once.
    """

    def exchange(self, key: str, said: str, is_closed: Callable[[], bool]) -> list[str]:
        """Say something under a key; return what every worker said, in their order.

        Args:
            key: What it is about.
            said: A short text.
            is_closed: Asked from time to time: once it is true, nobody waits for the answer any more.

        Raises:
            CancelledError: Nobody waits any more.
            DeadlineExceededError: A worker did not answer in time.
            UnavailableError: A worker is lost.
        """
        ...

    def forget(self, key: str) -> None:
        """Free what this worker said under a key: nobody will ask for it any more."""
        ...


class Topic:
    """Keys for one distributed dataset: the same ones on all workers, if all run the same program.

    With each text a worker says up to which pass it is through, so that what was said in passes that all are
    through with can be forgotten.

    Args:
        name: Tells one dataset of the program from another.
        agreement: The way.
    """

    def __init__(self, name: str, agreement: Agreement) -> None:
        self._name = name
        self._agreement = agreement
        self._passes = 0
        self._open: set[int] = set()
        self._last: dict[int, str] = {}  # the last key of each pass that is not forgotten

    def next_pass(self) -> "Talk":
        """Return the talk of a new pass, or of one that goes on elsewhere."""
        self._passes += 1
        self._open.add(self._passes)
        talk = Talk(self, self._passes)
        # Threads, and a garbage collector in the middle of them, come here: no locks.
        weakref.finalize(talk, self._open.discard, self._passes).atexit = False
        return talk

    def ask(self, said: str) -> list[str]:
        """Say one thing, and return what every worker said."""
        talk = self.next_pass()
        try:
            return talk.exchange(said)
        finally:
            talk.close()

    def exchange(
        self, number: int, round_: int, said: str, is_closed: Callable[[], bool]
    ) -> list[str]:
        """Say something in one round of a pass."""
        through = min(list(self._open), default=self._passes + 1) - 1
        key = f"{self._name}/{number}/{round_}"
        texts = self._agreement.exchange(key, f"{through} {said}", is_closed)
        told = [text.partition(" ") for text in texts]
        # Who has said something in this round has heard all of the one before.
        self._forget(self._last.pop(number, None))
        self._last[number] = key
        self._forget_until(min(int(through) for through, _, _ in told))
        return [text for _, _, text in told]

    def close(self, number: int) -> None:
        """Note that this worker is through with a pass."""
        self._open.discard(number)

    def _forget_until(self, through: int) -> None:
        for number in list(self._last):
            if number <= through:
                self._forget(self._last.pop(number, None))

    def _forget(self, key: str | None) -> None:
        if key is not None:
            self._agreement.forget(key)


class Talk:
    """What workers tell each other in one pass, round by round.

    Args:
        topic: What it is about.
        number: The pass.
    """

    def __init__(self, topic: Topic, number: int) -> None:
        self._topic = topic
        self._number = number
        self._round = 0
        self._is_closed = False

    def exchange(self, said: str) -> list[str]:
        """Say something, and return what every worker said in this round."""
        self._round += 1
        return self._topic.exchange(self._number, self._round - 1, said, lambda: self._is_closed)

    def close(self) -> None:
        """Wait for nobody any more."""
        self._is_closed = True
        self._topic.close(self._number)


# How many steps are agreed on at once, at most, and how much memory those of one worker may take.
_MOST_STEPS: Final = 64
_MOST_BYTES: Final = 1 << 25

# What a worker tells of a step: for each of its replicas the shapes of all parts; nothing, where no replica gets
# rows and nobody need take the step for that; or what it failed with.
_Told: TypeAlias = list[list[list[int]]] | str | None


@final
@dataclass
class _Step:
    """A step of this worker: the position before it, and its parts or what it failed with."""

    before: Any
    columns: list[Column] | None = None
    error: Exception | None = None


@final
class AgreedSteps(HostSteps):
    """Lets every worker take as many steps as the longest; who has run dry gets no rows.

    Where the rows of all workers are known, that is arithmetic. Else the workers tell each other what they
    have read, many steps at a time. A column is one array only where the pieces of all replicas, those of
    other workers too, have one shape. A step at which one worker fails is an error on all.

    Args:
        steps: This worker's own.
        plan: What an element looks like.
        share: Which worker this is.
        talk: Makes the way to the others; called anew after each `restore`.
        flow: The rows of all, where they are known.
        skips: Whether a step in which no replica of any worker gets rows is left out.
    """

    def __init__(  # noqa: PLR0913 - each is told apart by its name
        self,
        steps: HostSteps,
        plan: Node,
        share: Share,
        *,
        talk: Callable[[], Talk],
        flow: Flow | None = None,
        skips: bool = False,
    ) -> None:
        self._steps = steps
        self._skips = skips
        self._specs: list[TypeSpec] = flatten(plan.element_spec, DATA)
        self._share = share
        self._start_talk = talk
        self._talk: Talk | None = None
        self._flow = flow
        self._full_steps = 0 if flow is None else flow.full_steps
        self._full = [] if flow is None else [flow.batch // share.everyone] * share.everyone
        self._first = share.worker * share.replicas
        self._begin()

    def _begin(self) -> None:
        self._ready: deque[_Step] = deque()
        self._window = 1  # of one step, so that the first comes soon
        self._is_dry = False  # this worker has no more
        self._is_over = False  # nobody has
        self._number = 0

    def read(self) -> list[Column]:
        """Return the next step."""
        if self._flow is not None:
            return self._known(self._flow)
        while not self._ready:
            if self._is_over:
                raise StopIteration
            self._agree()
        step = self._ready.popleft()
        if step.error is not None:
            raise step.error
        assert step.columns is not None
        return step.columns

    def _known(self, flow: Flow) -> list[Column]:
        """Return the next step where it is known who gets how many rows at each."""
        while self._number < self._full_steps or not flow.is_over(self._number):
            counts, is_even = self._expected(flow)
            step = self._own()
            if step.error is not None:
                raise step.error
            self._number += 1
            pieces = self._pieces(step)
            _check_rows(pieces, counts[self._first : self._first + self._share.replicas])
            if any(counts):
                return [self._counted(column, counts, is_even=is_even) for column in pieces]
        raise StopIteration

    def _counted(
        self, column: list[Array] | None, counts: Sequence[int], *, is_even: bool
    ) -> Column:
        if column is None or (is_even and _can_be_one(column)):
            return None if column is None else _one_array(column)
        return pieces_of(column, self._share, counts)

    def _expected(self, flow: Flow) -> tuple[list[int], bool]:
        """Return how many rows each of all replicas gets, and whether that is one number."""
        if self._number < self._full_steps and self._share.divides(flow.batch):
            return self._full, True
        counts = flow.counts(self._number).tolist()
        return counts, len(set(counts)) == 1

    def _own(self) -> _Step:
        step = _Step(self._steps.state())
        try:
            if not self._is_dry:
                step.columns = self._steps.read()
        except StopIteration:
            self._is_dry = True
        except Exception as error:  # noqa: BLE001 - the other workers are told first
            step.error = error
        return step

    def _agree(self) -> None:
        """Read some steps, tell the others, and learn what they have."""
        own: list[_Step] = []
        while len(own) < self._window and not self._is_dry:
            step = self._own()
            if not self._is_dry:
                own.append(step)
        heard = [_heard(text) for text in self._said(own)]
        self._window = min(their.window for their in heard)
        self._is_over = all(their.is_dry for their in heard)
        if self._is_over:
            self._leave_talk()
        for number in range(max(len(their.steps) for their in heard)):
            mine = own[number] if number < len(own) else _Step(self._steps.state())
            all_of_it = [t.steps[number] if number < len(t.steps) else None for t in heard]
            self._ready.extend(self._agreed(mine, all_of_it))

    def _said(self, own: Sequence[_Step]) -> list[str]:
        self._talk = self._talk or self._start_talk()
        steps = [self._told(step) for step in own]
        runs = [[len(list(same)), step] for step, same in groupby(steps)]
        return self._talk.exchange(json.dumps([runs, self._is_dry, self._next_window(own)]))

    def _told(self, step: _Step) -> _Told:
        if step.error is not None:
            return f"{type(step.error).__name__}: {shortened(str(step.error))}"
        columns = [column for column in self._pieces(step) if column is not None]
        if self._skips and columns and not any(map(len, columns[0])):
            return None
        places = range(self._share.replicas)
        return [[list(column[place].shape) for column in columns] for place in places]

    def _next_window(self, own: Sequence[_Step]) -> int:
        size = max(map(_bytes, own), default=0)
        return max(1, min(2 * self._window, _MOST_STEPS, _MOST_BYTES // max(1, size)))

    def _agreed(self, mine: _Step, told: Sequence[_Told]) -> list[_Step]:
        """Return a step as all take it; none where nobody gets any rows."""
        for worker, step in enumerate(told):
            if isinstance(step, str):
                return [_Step(mine.before, error=mine.error or _failed(worker, step))]
        if not any(told):
            return []
        known: Any = [piece for step in told for piece in step or ()]
        dry = self._dry(max(known, key=_rows))
        shapes_when_dry = [[list(piece.shape) for piece in dry if piece is not None]]
        rows = [
            piece for step in told for piece in (step or shapes_when_dry * self._share.replicas)
        ]
        shapes = zip(*rows, strict=True)
        own = self._pieces(mine, dry)
        columns = [None if c is None else _told_of(c, next(shapes)) for c in own]
        return [_Step(mine.before, columns)]

    def _dry(self, beside: Sequence[Sequence[int]] = ()) -> list[Array | None]:
        """Return what a replica gets that has run dry, beside one that gets parts of these shapes."""
        shapes = iter(beside)
        return [
            without_rows(spec, next(shapes, None)) if isinstance(spec, TensorSpec) else None
            for spec in self._specs
        ]

    def _pieces(
        self, step: _Step, dry: Sequence[Array | None] | None = None
    ) -> list[list[Array] | None]:
        """Return what each replica of this worker gets; zero rows where it has run dry."""
        if step.columns is None:
            count = self._share.replicas
            pieces = self._dry() if dry is None else dry
            return [None if piece is None else [piece] * count for piece in pieces]
        return [
            column if column is None or isinstance(column, list) else [column]
            for column in step.columns
        ]

    def state(self) -> Any:
        """Return this worker's position before the next step."""
        return self._ready[0].before if self._ready else self._steps.state()

    def restore(self, state: Any) -> None:
        """Take up a position; how many rows are left is then not known any more."""
        self._steps.restore(state)
        self._leave_talk()
        self._talk, self._flow = None, None
        self._begin()

    def close(self) -> None:
        """End the threads below, and wait for nobody."""
        self._leave_talk()
        self._steps.close()

    def _leave_talk(self) -> None:
        if self._talk is not None:
            self._talk.close()


class _Heard(NamedTuple):
    """What a worker told of some steps."""

    steps: list[_Told]
    is_dry: bool
    window: int


def _heard(text: str) -> _Heard:
    runs, is_dry, window = json.loads(text)
    return _Heard([step for count, step in runs for _ in range(count)], is_dry, window)


def _rows(shapes: Sequence[Sequence[int]]) -> int:
    """Return how many rows parts of these shapes have."""
    return max((shape[0] for shape in shapes if shape), default=0)


def _told_of(column: list[Array], shapes: Sequence[Sequence[int]]) -> Column:
    """Return a column where workers have told the shapes of all its pieces."""
    pieces = Pieces(column, shapes)
    is_even = len(set(pieces.shapes)) == 1
    return _one_array(column) if is_even and _can_be_one(column) else pieces


def _can_be_one(column: list[Array]) -> bool:
    """Tell whether pieces of one shape are one array on the devices: scalars are lifted there."""
    return column[0].dtype != dtypes.string and column[0].size > 0 and column[0].ndim > 0


def _one_array(column: list[Array]) -> Array:
    return column[0] if len(column) == 1 else np.concatenate(column)


def _bytes(step: _Step) -> int:
    columns = [column for column in step.columns or [] if column is not None]
    arrays = [a for column in columns for a in (column if isinstance(column, list) else [column])]
    return sum(array.nbytes for array in arrays)


def _failed(worker: int, what: str) -> AbortedError:
    return AbortedError(
        f"Worker {worker} failed at this step: {what}",
        fix="see what it printed; the steps behind this one can still be read.",
    )


def _check_rows(columns: Sequence[list[Array] | None], counts: list[int]) -> None:
    """Raise where rows are missing that the others count on: programs of unlike shapes would hang."""
    parts = next((column for column in columns if column is not None), None)
    found = counts if parts is None else list(map(len, parts))
    if found != counts:
        raise AbortedError(
            f"The replicas of this worker were to get {counts} rows at this step, but there are {found}.",
            fix="the dataset has fewer elements than it says, perhaps because some failed: "
            "begin anew, with ignore_errors() before batch().",
        )
