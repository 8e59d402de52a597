"""A library with a setting of its own hears when the current strategy of a thread changes."""

import pytest

import evenfeed as tf
from evenfeed.strategy.followers import Followers, followers


def test_a_function_is_called_at_once_and_after_each_change_but_added_once() -> None:
    own, calls = Followers(), list[int]()

    def follow() -> None:
        calls.append(len(calls))

    own.add(follow)
    own.add(follow)
    own.notify()
    assert calls == [0, 1]


def test_a_scope_that_a_library_refuses_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> None:
        if tf.distribute.has_strategy():
            raise ValueError("not here")

    monkeypatch.setattr(followers, "_functions", [refuse])
    with pytest.raises(ValueError, match="not here"):
        tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).scope().__enter__()
    assert not tf.distribute.has_strategy()
