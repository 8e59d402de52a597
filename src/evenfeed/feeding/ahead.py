"""Reads steps, and brings them to the devices, in a thread ahead of the training step."""

import atexit
import threading
import weakref
from collections import deque
from collections.abc import Callable
from contextvars import copy_context
from dataclasses import dataclass
from typing import Any, Final, final

from evenfeed.core.errors import CancelledError, InvalidArgumentError
from evenfeed.feeding.host_steps import HostSteps
from evenfeed.replicas.mesh import same_width

# No wait is longer, so that an abandoned thread ends and Ctrl-C is heard, whatever goes wrong.
_WAIT: Final = 0.05
_JOIN: Final = 1.0


@final
@dataclass(slots=True)
class _Item:
    """What one step gave: its value, an error, or the end. `before` is the position of the step.

    `misplaced` is an error of bringing it to the devices.
    """

    before: Any
    value: Any = None
    error: BaseException | None = None
    misplaced: InvalidArgumentError | None = None


@final
class StepsAhead:
    """The steps of a dataset on their devices, at most `depth` of them before they are asked for.

    The thread starts with the first step that is asked for. It ends when this is closed or forgotten, or
    the interpreter exits.

    Args:
        steps: Reads the rows.
        place: Brings them to the devices.
        depth: How many steps to be ahead; with 0 there is no thread.
    """

    def __init__(self, steps: HostSteps, place: Callable[[Any], Any], depth: int) -> None:
        self._steps = steps
        self._place = place
        self._depth = depth
        self._shared: _Shared | None = None

    def take(self) -> Any:
        """Return the next step.

        Raises:
            StopIteration: There is none.
        """
        if self._depth == 0:
            return self._place(self._steps.read())
        if self._shared is None:
            self._shared = _Shared(self._steps, self._place, self._depth)
            # The thread knows only what is shared: that nobody holds this can be noticed.
            weakref.finalize(self, self._shared.stop)
            self._shared.start()
        return self._shared.take()

    def state(self) -> Any:
        """Return the position behind the last step that was taken."""
        return self._steps.state() if self._shared is None else self._shared.position()

    def restore(self, state: Any) -> None:
        """Take up a position; the thread starts anew with the next step."""
        self._stop()
        self._steps.restore(state)

    def close(self) -> None:
        """End the thread, and those below."""
        self._stop()
        self._steps.close()

    def _stop(self) -> None:
        if self._shared is not None:
            self._shared.stop()
            self._shared.join(_JOIN)
            self._shared = None


@final
class _Shared:
    """What the consumer and the thread have in common."""

    def __init__(self, steps: HostSteps, place: Callable[[Any], Any], depth: int) -> None:
        self._steps = steps
        self._place = place
        self._depth = depth
        self._changed = threading.Condition()
        self._items: deque[_Item] = deque()
        self._reading = steps.state()  # the position of the step that is being read
        self._ended = False
        self._stopped = False
        self._width = same_width()
        self._thread = threading.Thread(
            target=copy_context().run, args=(self._work,), name="evenfeed-feed", daemon=True
        )

    def start(self) -> None:
        """Start the thread."""
        atexit.register(self._leave)
        self._thread.start()

    def stop(self) -> None:
        """Let the thread end after its present step. Takes no lock: a garbage collector may call this."""
        self._stopped = True

    def join(self, timeout: float) -> None:
        """Wait for the thread, not for long."""
        if self._thread is not threading.current_thread():
            self._thread.join(timeout)

    def take(self) -> Any:
        """Return the next step, wait for it where it is not there; raise an error in its place."""
        with self._changed:
            while not self._items:
                if self._stopped:
                    raise CancelledError("The iterator was closed while it was read.")
                self._changed.wait(_WAIT)
            item = self._items[0]
            if isinstance(item.error, StopIteration):
                raise StopIteration  # the end stays where it is
            self._items.popleft()
            self._changed.notify_all()
        if item.misplaced is not None:
            raise _said_here(item.misplaced)
        if item.error is not None:
            raise item.error
        return item.value

    def position(self) -> Any:
        """Return the position of the next step that is taken."""
        with self._changed:
            return self._items[0].before if self._items else self._reading

    def _work(self) -> None:
        try:
            with self._width:
                while not self._ended and self._wait_for_room():
                    self._add(self._read())
        finally:
            atexit.unregister(self._leave)

    def _wait_for_room(self) -> bool:
        with self._changed:
            while len(self._items) >= self._depth and not self._stopped:
                self._changed.wait(_WAIT)
        return not self._stopped

    def _read(self) -> _Item:
        item = _Item(self._reading)
        try:
            rows = self._steps.read()
            try:
                item.value = self._place(rows)
            except InvalidArgumentError as error:
                item.misplaced = error
        except BaseException as error:  # noqa: BLE001 - raised where the consumer reaches it
            item.error = error
        return item

    def _add(self, item: _Item) -> None:
        ended = item.error is not None and not _goes_on(item.error)
        following = item.before if ended else self._steps.state()
        with self._changed:
            self._items.append(item)
            self._reading = following
            self._ended = ended
            self._changed.notify_all()

    def _leave(self) -> None:
        """End the thread before the interpreter goes: a thread that NumPy or XLA runs in may crash it."""
        self.stop()
        self.join(_JOIN)


def _said_here(error: InvalidArgumentError) -> InvalidArgumentError:
    """Return an error of the thread as one of the line that asks for the step: no other line is a user's."""
    return InvalidArgumentError(error.message, fix=error.fix)


def _goes_on(error: BaseException) -> bool:
    """Tell whether there are steps behind an error: an element that fails is passed."""
    return isinstance(error, Exception) and not isinstance(error, StopIteration)
