"""The thread behind every prefetch: when it reads, and when it ends."""

import threading
from collections.abc import Callable
from contextvars import ContextVar

import pytest
from tests.processes import wait_until

from evenfeed.core.concurrency import prefetching
from evenfeed.core.concurrency.prefetching import Prefetching

MOST = 3
LETTER: ContextVar[str] = ContextVar("LETTER", default="none")


class Numbers(Prefetching[int]):
    """Reads up to three numbers ahead, `total` in all."""

    def __init__(self, total: int = 1000) -> None:
        super().__init__("evenfeed-numbers")
        self.total = total
        self.read = 0
        self.letters: list[str] = []
        self.during: Callable[[], object] = list

    def start(self) -> None:
        self._start()

    def take(self) -> int:
        with self._lock:
            self._room.notify_all()
            return self._items.popleft()

    def leave(self) -> None:
        self._leave()

    @property
    def ready(self) -> int:
        return len(self._items)

    @property
    def runs(self) -> bool:
        return self._thread is not None

    def _begins_read(self) -> bool:
        return len(self._items) < MOST

    def _read_ahead(self) -> None:
        self.during()
        self.letters.append(LETTER.get())
        with self._lock:
            self._items.append(self.read)
            self.read += 1
            self._ended = self.read == self.total


def test_it_reads_as_much_as_there_is_room_for():
    numbers = Numbers()
    assert not numbers.runs
    numbers.start()
    wait_until(lambda: numbers.ready == MOST)
    assert [numbers.take() for _ in range(MOST)] == [0, 1, 2]
    wait_until(lambda: numbers.ready == MOST)
    assert numbers.read == 2 * MOST
    numbers.stop_now()
    assert numbers.joined(20)


@pytest.mark.parametrize("end", [Numbers.stop, Numbers.stop_now, Numbers.leave])
def test_it_ends_when_it_is_stopped_and_when_the_program_exits(end: Callable[[Numbers], None]):
    numbers = Numbers()
    numbers.start()
    wait_until(lambda: numbers.ready == MOST)
    end(numbers)
    wait_until(lambda: not numbers.runs)
    numbers.start()
    assert not numbers.runs


def test_it_ends_with_the_data():
    numbers = Numbers(total=2)
    numbers.start()
    wait_until(lambda: not numbers.runs)
    assert numbers.ready == 2
    numbers.start()  # there is nothing to do
    assert not numbers.runs


def test_a_second_start_starts_no_second_thread():
    numbers = Numbers()
    for _ in range(3):
        numbers.start()
    wait_until(lambda: numbers.ready == MOST)
    named = [thread for thread in threading.enumerate() if thread.name == "evenfeed-numbers"]
    assert len(named) == 1
    numbers.stop_now()
    assert numbers.joined(20)


def test_it_stops_when_its_owner_is_collected():
    class Owner:
        pass

    owner, numbers = Owner(), Numbers()
    numbers.stop_with(owner)
    numbers.start()
    wait_until(lambda: numbers.ready == MOST)
    del owner
    wait_until(lambda: not numbers.runs)


def test_a_wait_for_a_thread_that_is_busy_ends_and_says_so():
    let_go = threading.Event()
    numbers = Numbers()
    numbers.during = let_go.wait
    numbers.start()
    wait_until(lambda: any(t.name == "evenfeed-numbers" for t in threading.enumerate()))
    numbers.stop_now()
    assert not numbers.joined(0.01)
    let_go.set()
    assert numbers.joined(20)


def test_it_sees_the_context_of_the_code_that_started_it():
    numbers = Numbers(total=1)
    token = LETTER.set("a")
    numbers.start()
    LETTER.reset(token)
    wait_until(lambda: numbers.letters == ["a"])


def test_without_a_free_thread_the_consumer_reads(monkeypatch: pytest.MonkeyPatch):
    def refuse(thread: object) -> None:
        del thread
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(prefetching, "start_soon", refuse)
    numbers = Numbers()
    numbers.start()
    assert not numbers.runs
