import gc
import threading

import pytest

from evenfeed.core.concurrency.waiting import Pending
from evenfeed.core.errors import DataLossError
from evenfeed.formats.bytes.inflating import Ahead

WAIT = 20


class Letters:
    """Returns pieces of an alphabet, and records which thread asked for what."""

    def __init__(self, fails_at=None, waits_at=None):
        self.at = 0
        self.asked = []
        self.fails_at = fails_at
        self.waits_at = waits_at
        self.waiting, self.go_on, self.closed = (threading.Event() for _ in range(3))

    def read(self, most):
        assert not self.closed.is_set()
        self.asked.append((self.at, threading.current_thread() is threading.main_thread()))
        if self.at == self.waits_at:
            self.waiting.set()
            assert self.go_on.wait(WAIT)
        if self.at == self.fails_at:
            raise DataLossError("damaged", fix="write it again.")
        piece = b"abcdefghijklmnopqrstuvwxyz"[self.at : self.at + min(most, 3)]
        self.at += len(piece)
        return piece

    def close(self):
        self.closed.set()


def all_of(ahead, *sizes):
    pieces = [ahead.read(size) for size in sizes]
    while piece := ahead.read(100):
        pieces.append(piece)
    return pieces


@pytest.mark.parametrize("sizes", [(), (1, 1, 1, 1), (100, 2, 100, 1, 1, 50)])
def test_all_bytes_come_in_order_whatever_is_asked_for(sizes):
    ahead = Ahead(Letters())
    pieces = all_of(ahead, *sizes)
    assert b"".join(pieces) == b"abcdefghijklmnopqrstuvwxyz"
    assert all(len(piece) <= size for piece, size in zip(pieces, sizes, strict=False))
    assert ahead.read(5) == b""


def test_the_first_pieces_are_read_by_who_asks():
    letters = Letters()
    ahead = Ahead(letters)
    assert ahead.read(100) == b"abc"
    assert letters.asked == [(0, True)]
    assert ahead.read(100) == b"def"
    assert all_of(ahead)[-1] == b"yz"
    assert [by_main for _, by_main in letters.asked] == [True, True] + [False] * 8


def test_one_piece_is_read_ahead_and_no_more():
    letters = Letters()
    ahead = Ahead(letters)
    for read in range(2, 6):
        ahead.read(100)
        if read > 2:
            ahead._next.result(WAIT)
            assert len(letters.asked) == read


def test_an_error_is_raised_when_its_piece_is_wanted():
    ahead = Ahead(Letters(fails_at=9))
    assert [ahead.read(100) for _ in range(3)] == [b"abc", b"def", b"ghi"]
    with pytest.raises(DataLossError, match=r"damaged\n  at:  .*test_inflating\.py") as caught:
        ahead.read(100)
    assert caught.value.fix in str(caught.value)


def test_a_file_is_closed_when_the_thread_has_let_go_of_it():
    letters = Letters(waits_at=6)
    ahead = Ahead(letters)
    ahead.read(100)
    ahead.read(100)
    assert letters.waiting.wait(WAIT)
    ahead.close()
    assert not letters.closed.is_set()
    letters.go_on.set()
    assert letters.closed.wait(WAIT)


def test_a_file_that_no_thread_reads_is_closed_at_once():
    letters = Letters()
    ahead = Ahead(letters)
    ahead.read(100)
    ahead.close()
    assert letters.closed.is_set()


def test_what_was_read_while_ctrl_c_came_is_not_lost(monkeypatch):
    ahead = Ahead(Letters())
    assert [ahead.read(100), ahead.read(100)] == [b"abc", b"def"]
    waited, interrupted = Pending.result, []

    def result(self, timeout=None):
        if not interrupted:
            interrupted.append(True)
            raise KeyboardInterrupt
        return waited(self, timeout)

    monkeypatch.setattr(Pending, "result", result)
    with pytest.raises(KeyboardInterrupt):
        ahead.read(100)
    assert ahead.read(100) == b"ghi"


def test_a_file_that_is_forgotten_needs_no_care():
    letters = Letters()
    ahead = Ahead(letters)
    ahead.read(100)
    ahead.read(100)
    following = ahead._next
    del ahead
    gc.collect()
    assert following.result(WAIT) == b"ghi"
