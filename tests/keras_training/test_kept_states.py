"""When a worker is lost, `fit` says who, and the model has its weights after the last complete step."""

from typing import Any

import numpy as np
import pytest
from tests.mirroring import mirrored

import evenfeed as tf
import evenfeed.keras  # connects Keras, which the modules below need
from evenfeed.core.concurrency.peers import Peers
from evenfeed.keras_training import kept_states, models

X = np.ones([8, 1], np.float32)


@pytest.fixture
def lost(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Let steps run as if on several workers. Returns the call that loses one."""
    peers = Peers()
    peers.expect(["worker 0", "worker 1"])
    monkeypatch.setattr(models, "peers", peers)
    monkeypatch.setattr(kept_states, "is_across_workers", lambda: True)

    def lose() -> None:
        peers.hear(1, "is lost.")
        raise ValueError("UNKNOWN: Gloo all-reduce failed: Connection reset by peer")

    return lose


def model_of(steps: int) -> Any:
    """Return a model whose only weight is the number of its steps."""
    with mirrored(2).scope():
        layer = tf.keras.layers.Dense(1, kernel_initializer="zeros", use_bias=False)
        model = tf.keras.Sequential([tf.keras.Input((1,)), layer])
    model.compile(
        tf.keras.optimizers.SGD(1.0),
        lambda _, y: -tf.reduce_sum(y, -1),
        steps_per_execution=steps,
    )
    return model


@pytest.mark.parametrize("steps", [1, 2])
def test_a_worker_that_is_lost_in_a_step_is_named_and_the_weights_before_it_are_left(
    lost: Any, steps: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept: list[Any] = []
    own = kept_states.keep

    def keep(model: Any, state: Any) -> None:
        if len(kept) == 3:
            lost()
        kept.append(state)
        own(model, state)

    monkeypatch.setattr(kept_states, "keep", keep)
    model = model_of(steps)
    data = tf.data.Dataset.from_tensor_slices((X, X)).batch(2).repeat()
    with pytest.raises(tf.errors.UnavailableError, match="worker 1 is lost"):
        model.fit(data, steps_per_epoch=8, verbose=0)
    np.testing.assert_array_equal(
        model.get_weights()[0], kept[-1][0][0]
    )  # its step may have failed


def test_a_loss_that_is_noticed_after_the_step_leaves_the_weights_before_it(lost: Any) -> None:
    model = model_of(1)

    class Waiting(tf.keras.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            del logs
            if batch == 2:
                lost()

    with pytest.raises(tf.errors.UnavailableError, match="worker 1 is lost"):
        model.fit(X, X, batch_size=2, verbose=0, callbacks=[Waiting()])
    assert model.get_weights()[0] == 2


def test_training_across_workers_gives_the_same_weights_and_keeps_nothing(lost: Any) -> None:
    del lost
    model = model_of(2)
    model.fit(X, X, batch_size=2, epochs=2, verbose=0)
    assert model.get_weights()[0] == 8
    model.evaluate(X, X, batch_size=2, verbose=0)
    assert "_evenfeed_kept_state" not in vars(model)
