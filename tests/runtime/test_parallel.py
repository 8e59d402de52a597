"""Parallel work ahead of the reader: ordered or not, resumed, and retried if it could not be started."""

import json
import os
import signal
import threading

import pytest
from tests.resuming import assert_resumes, rows_of

import evenfeed as tf
from evenfeed.core.block import Block
from evenfeed.core.callsite import Origin
from evenfeed.core.concurrency.waiting import Pending
from evenfeed.errors import UnavailableError
from evenfeed.plan.sources import Range
from evenfeed.runtime.functions.row_function import trace
from evenfeed.runtime.operators.parallel import WorkAhead
from evenfeed.runtime.operators.sources import Numbers
from evenfeed.runtime.positions.orders import Forward
from evenfeed.runtime.positions.rows import Walk

NUMBER = tf.TensorSpec([], tf.int64)


class Halves(WorkAhead):
    """Processes three elements at a time, and finishes on request; odd tens fail."""

    ahead = 12
    together = 3

    def __init__(self, count, *, in_order=True, finish=True):
        rows = Walk(Numbers(Range(0, count)), Forward(count))
        super().__init__(rows, trace(abs, NUMBER, Origin("train.py", 12)), in_order=in_order)
        self.started = []
        self.finishes = finish
        self.failure = None

    def start(self, block, number):
        assert block.columns[0].tolist() == list(range(number, number + block.length))
        future = Pending()
        self.started.append((future, block))
        if self.finishes:
            self.finish(-1)
        return future

    def finish(self, place):
        future, block = self.started[place]
        if self.failure is not None:
            future.set_exception(self.failure)
        else:
            future.set_result(list(outcomes(block)))


def outcomes(block):
    for row in range(block.length):
        failed = block.columns[0][row] % 10 == 5
        yield KeyError(row) if failed else block.cut(row, row + 1)


def test_elements_come_in_order_and_resume_is_exact():
    rows = assert_resumes(lambda: Halves(20), 1, 2, 5, 50)
    assert [row if row is KeyError else row[0][2] for row in rows] == [
        KeyError if number % 10 == 5 else number for number in range(20)
    ]


def test_elements_are_started_a_few_at_a_time_and_no_more_than_agreed():
    operator = Halves(100)
    operator.read(1)
    assert [block.length for _, block in operator.started] == [3] * 4
    operator.read(1)
    operator.read(1)
    assert [block.length for _, block in operator.started] == [3] * 5


def numbers(block):
    return block.columns[0].tolist()


def test_without_order_what_is_done_comes_first_and_resume_knows_it():
    operator = Halves(12, in_order=False, finish=False)
    operator.begin()
    operator.finish(2)
    assert numbers(operator.read(2)) == [6, 7]
    state = json.loads(json.dumps(operator.state()))
    assert numbers(operator.read(2)) == [8]
    again = Halves(12, in_order=False)
    again.restore(state)
    rest = [row if row is KeyError else row[0][2] for row in rows_of(again, 4)]
    assert rest == [0, 1, 2, 3, 4, KeyError, 8, 9, 10, 11]


def test_what_could_not_be_started_is_passed_by_nobody_and_tried_again():
    operator = Halves(4)
    operator.failure = UnavailableError("no process")
    before = operator.state()
    for _ in range(2):
        with pytest.raises(UnavailableError, match="no process"):
            operator.read(4)
        assert operator.state() == before
    operator.failure = None
    assert numbers(operator.read(4)) == [0, 1, 2, 3]


def test_who_waited_is_told_for_what():
    operator = Halves(6, finish=False)
    threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt) as caught:
        operator.read(1)
    assert caught.value.__notes__ == [
        "while waiting for element 0 of abs, asked for at train.py:12"
    ]
    operator.finish(0)
    assert numbers(operator.read(1)) == [0]


def test_what_is_delivered_is_let_go():
    operator = Halves(6)
    while (block := operator.read(1)) is not None:
        assert isinstance(block, Block)
        if numbers(block) == [4]:
            break
    assert len(operator._calls) == 1
    operator.drop()
    assert operator.state()[0] == 6
