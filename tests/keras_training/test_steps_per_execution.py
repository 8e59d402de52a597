"""`steps_per_execution` runs the steps of an execution in one program, and gives what single steps give."""

from typing import Any

import numpy as np
import pytest
from tests.keras_training.models import DATA, WEIGHTS, X, Y, classifier
from tests.mirroring import mirrored

import evenfeed as tf
from evenfeed.keras_training.dataset_adapter import KerasBatches

ENDED = "ignore:Your input ran out of data"


@pytest.fixture(params=[None, 2])
def scope(request: pytest.FixtureRequest) -> Any:
    return tf.distribute.get_strategy() if request.param is None else mirrored(request.param)


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of steps that ran in one program."""
    found: list[int] = []
    own = KerasBatches.take_run

    def noted(self: KerasBatches, run: Any) -> bool:
        found.append(run.count)
        return own(self, run)

    monkeypatch.setattr(KerasBatches, "take_run", noted)
    return found


class Numbers(tf.keras.callbacks.Callback):
    """Records the numbers of the batches that callbacks get."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[int, int]] = []

    def on_train_batch_begin(self, batch: int, logs: Any = None) -> None:
        self.begin = batch

    def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
        self.seen.append((self.begin, batch))


def with_dropout(**settings: Any) -> Any:
    layers = tf.keras.layers
    model = tf.keras.Sequential([layers.Input((5,)), layers.Dropout(0.5, seed=3), layers.Dense(2)])
    model.layers[-1].set_weights(WEIGHTS)
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(tf.keras.optimizers.Adam(0.1), loss, metrics=["accuracy"], **settings)
    return model


def test_an_execution_is_one_program_with_the_results_of_single_steps(
    scope: Any, runs: list[int]
) -> None:
    data = DATA.batch(10)
    numbers = Numbers()
    with scope.scope():
        model, single = with_dropout(steps_per_execution=3), with_dropout()
    found = model.fit(data, epochs=3, verbose=0, validation_data=data, callbacks=[numbers])
    expected = single.fit(data, epochs=3, verbose=0, validation_data=data)
    for name, values in expected.history.items():
        np.testing.assert_allclose(found.history[name], values, rtol=1e-5, err_msg=name)
    for one, other in zip(model.get_weights(), single.get_weights(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)
    assert numbers.seen == [(0, 2), (3, 5), (6, 8)] * 3
    assert runs[-6:] == [3, 3, 1] * 2  # the last epoch, and its validation
    assert sum(runs) == 6 * 7


@pytest.mark.filterwarnings(ENDED)
@pytest.mark.parametrize("kind", ["unknown size", "two epochs in one pass"])
def test_no_batch_is_dropped(kind: str, runs: list[int]) -> None:
    data, steps = DATA.batch(16), None  # the last batch has six rows
    if kind == "unknown size":
        data = data.filter(lambda x, y: True)
    else:
        data, steps = data.repeat(2), 5
    model, single = classifier(steps_per_execution=5), classifier()
    found = model.fit(data, epochs=2, steps_per_epoch=steps, verbose=0).history
    expected = single.fit(data, epochs=2, steps_per_epoch=steps, verbose=0).history
    np.testing.assert_allclose(found["loss"], expected["loss"], rtol=1e-5)
    assert runs


def test_evaluate_and_predict_run_in_one_program(scope: Any, runs: list[int]) -> None:
    with scope.scope():
        model, single = classifier(steps_per_execution=4), classifier()
    data = DATA.batch(16)
    found = model.evaluate(data, verbose=0, return_dict=True)
    assert found == pytest.approx(single.evaluate(X, Y, verbose=0, return_dict=True), rel=1e-5)
    assert 0 < sum(runs) <= 5
    runs.clear()
    alone = data.map(lambda x, y: x)
    np.testing.assert_allclose(model.predict(alone, verbose=0), single.predict(X, verbose=0), 1e-5)
    assert 0 < sum(runs) <= 5


def test_class_weights_and_steps_of_users_give_the_same(runs: list[int]) -> None:
    class Own(tf.keras.Model):
        def __init__(self) -> None:
            super().__init__()
            self.layer = tf.keras.layers.Dense(2)

        def call(self, x: Any) -> Any:
            return self.layer(x)

        def train_step(self, data: Any) -> Any:
            x, y, weights = data
            with tf.GradientTape() as tape:
                loss = self.compute_loss(x, y, self(x), weights)
            variables = self.trainable_variables
            self.optimizer.apply_gradients(
                zip(tape.gradient(loss, variables), variables, strict=True)
            )
            return {"loss": loss}

    found = []
    for steps in (1, 3):
        model = Own()
        model(X[:1])
        model.set_weights(WEIGHTS)
        loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
        model.compile("sgd", loss, steps_per_execution=steps)
        model.fit(DATA.batch(10), epochs=2, verbose=0, class_weight={0: 1.0, 1: 3.0})
        found.append(model.get_weights()[0])
    np.testing.assert_allclose(*found, rtol=1e-5)
    assert sum(runs) == 14


def test_an_empty_dataset_is_an_error() -> None:
    with pytest.raises(ValueError, match="The dataset has no batches"):
        classifier(steps_per_execution=2).fit(DATA.take(0).batch(2), verbose=0)


def broken(batches: int, error: BaseException) -> Any:
    """Return a dataset that has some batches, and then an error."""

    def rows() -> Any:
        for number in range(batches):
            yield X[number * 8 :][:8], Y[number * 8 :][:8]
        raise error

    spec = (tf.TensorSpec((8, 5), tf.float32), tf.TensorSpec((8,), tf.int32))
    return tf.data.Dataset.from_generator(rows, output_signature=spec)


@pytest.mark.parametrize("batches", [2, 4])  # the first execution breaks, or the second
@pytest.mark.parametrize("steps", [1, 3])
def test_an_error_of_the_data_leaves_the_model_after_its_complete_steps(
    scope: Any, steps: int, batches: int
) -> None:
    with scope.scope():
        model, single = with_dropout(steps_per_execution=steps), with_dropout()
    data = broken(batches, ValueError("broken file"))
    with pytest.raises(ValueError, match="broken file"):
        model.fit(data, verbose=0)
    single.fit(DATA.batch(8).take(batches), verbose=0)
    for one, other in zip(model.get_weights(), single.get_weights(), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)
    assert int(model.optimizer.iterations) == batches
    before = model.get_weights()
    for run in (model.evaluate, model.predict):
        with pytest.raises(ValueError, match="broken file"):
            run(data, verbose=0)
        np.testing.assert_array_equal(model.get_weights()[0], before[0])
    model.fit(DATA.batch(8), verbose=0)
    assert int(model.optimizer.iterations) == batches + 9


def test_an_interrupt_while_an_execution_waits_for_data_leaves_the_weights(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    model = classifier(steps_per_execution=4)
    own = KerasBatches.peek_run
    seen: list[int] = []

    def interrupted(self: KerasBatches, most: int) -> Any:
        seen.append(most)
        if len(seen) == 2:
            raise KeyboardInterrupt
        return own(self, most)

    monkeypatch.setattr(KerasBatches, "peek_run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.fit(DATA.batch(10), verbose=0)
    done = int(model.optimizer.iterations)
    assert done > 0
    single = classifier()
    single.fit(DATA.batch(10).take(done), verbose=0)
    np.testing.assert_allclose(model.get_weights()[0], single.get_weights()[0], rtol=1e-5)


@pytest.mark.parametrize("steps", [1, 3])
def test_an_error_of_a_step_or_a_callback_leaves_the_weights(steps: int) -> None:
    def stop(batch: int, logs: Any = None) -> None:
        raise RuntimeError("stopped")

    model = classifier(steps_per_execution=steps)
    wide = tf.data.Dataset.from_tensors((np.ones((8, 6), np.float32), Y[:8]))
    for data in (wide, wide.repeat(3)):
        for run in (model.fit, model.evaluate, model.predict):
            with pytest.raises(ValueError, match="incompatible"):
                run(data, verbose=0)
            np.testing.assert_array_equal(model.get_weights()[0], WEIGHTS[0])
    ending = tf.keras.callbacks.LambdaCallback()
    ending.on_test_batch_end = ending.on_predict_batch_end = stop
    for run in (model.evaluate, model.predict):
        with pytest.raises(RuntimeError, match="stopped"):
            run(DATA.batch(10), verbose=0, callbacks=[ending])
        np.testing.assert_array_equal(model.get_weights()[0], WEIGHTS[0])


@pytest.mark.parametrize("steps", ["auto", 0, 2.5])
def test_steps_per_execution_is_a_number_of_steps(steps: Any) -> None:
    model = classifier(steps_per_execution=steps)
    with pytest.raises(ValueError, match=r"steps_per_execution=.* is not a number of steps"):
        model.fit(DATA.batch(10), verbose=0)
    with pytest.raises(ValueError, match="is not a number of steps"):
        model.train_on_batch(X, Y)


@pytest.mark.filterwarnings(ENDED)
def test_data_of_unknown_size_may_end_in_the_middle_of_an_execution() -> None:
    model = classifier(steps_per_execution=2)
    model.evaluate(DATA.filter(lambda x, y: y < 2).take(30).batch(10), verbose=0)  # 3 batches
