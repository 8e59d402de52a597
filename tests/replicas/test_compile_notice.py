"""A compilation that takes long says so, once, and nothing else does."""

import logging
import threading
import time
from typing import Any

import numpy as np
import pytest
from tests.processes import wait_until

import evenfeed as tf
from evenfeed.replicas.function import compiler
from evenfeed.replicas.function.compile_notice import CompileNotice


def slow_step(x: Any) -> Any:
    time.sleep(0.5)  # while it is traced
    return x + 1


def doubled(x: Any) -> Any:
    return x * 2


def compiling(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [text for text in caplog.messages if text.startswith("Compiling ")]


def test_a_slow_compilation_is_announced_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(compiler, "compile_notice", CompileNotice(seconds=0.01))
    with caplog.at_level(logging.WARNING, "evenfeed"):
        compiled = tf.function(slow_step)
        compiled(tf.zeros([2]))
        compiled(tf.zeros([3]))
    (line,) = compiling(caplog)
    assert line.startswith("Compiling slow_step (called at ")
    assert "test_compile_notice.py:" in line


def test_a_step_that_a_loop_drives_is_announced_by_its_name(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(compiler, "compile_notice", CompileNotice(seconds=0.01))
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    dataset = tf.data.Dataset.from_tensor_slices(np.zeros(4, np.float32)).batch(4)

    @tf.function
    def train(iterator: Any) -> Any:
        return strategy.run(slow_step, args=(next(iterator),))

    with caplog.at_level(logging.WARNING, "evenfeed"):
        train(iter(strategy.experimental_distribute_dataset(dataset)))
    (line,) = compiling(caplog)
    assert line.startswith("Compiling slow_step ")


def test_a_quick_compilation_and_later_calls_are_silent(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    watched: list[int] = []
    notice = CompileNotice(seconds=60)

    def watch(function: Any) -> Any:
        watched.append(1)
        return CompileNotice.watch(notice, function)

    monkeypatch.setattr(
        compiler, "compile_notice", type("Watching", (), {"watch": staticmethod(watch)})
    )
    compiled = tf.function(doubled)
    for _ in range(5):
        compiled(tf.zeros([2]))
    assert watched == [1]  # the calls after the first have nothing to do with it
    assert not compiling(caplog)


def test_an_error_ends_the_watch(caplog: pytest.LogCaptureFixture) -> None:
    notice = CompileNotice(seconds=0.2)
    with pytest.raises(ZeroDivisionError), notice.watch(slow_step):
        raise ZeroDivisionError
    time.sleep(0.3)
    assert not compiling(caplog)


def test_no_thread_stays() -> None:
    notice = CompileNotice(seconds=60)
    with notice.watch(slow_step):
        pass
    wait_until(lambda: not threads())


def threads() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name == "evenfeed-compile"]
