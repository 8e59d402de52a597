"""`fit`, `evaluate` and `predict` take datasets, and give what Keras gives with arrays."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from tests.keras_training.models import DATA, WEIGHTS, Rows, X, Y, classifier

import evenfeed as tf

ENDED = "ignore:Your input ran out of data"


@cache
def of_arrays(**settings: Any) -> Any:
    """Return the history that Keras has with arrays."""
    return classifier().fit(X, Y, batch_size=16, shuffle=False, verbose=0, **settings).history


def assert_same(found: dict[str, list[float]], expected: dict[str, list[float]]) -> None:
    assert found.keys() == expected.keys()
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-5, err_msg=name)


def test_a_dataset_trains_as_its_arrays_do() -> None:
    data = DATA.batch(16)
    found = classifier().fit(data, epochs=3, verbose=0, validation_data=data.take(2))
    expected = classifier().fit(
        *(X, Y, 16, 3), shuffle=False, verbose=0, validation_data=(X[:32], Y[:32])
    )
    assert_same(found.history, expected.history)


@pytest.mark.filterwarnings(ENDED)
@pytest.mark.parametrize("size", ["unknown", "infinite", "two epochs in one pass"])
def test_the_number_of_batches_may_be_unknown_or_infinite(size: str) -> None:
    data, steps = DATA.batch(16), None
    if size == "unknown":
        data = data.filter(lambda x, y: True)
    elif size == "infinite":
        data, steps = data.repeat(), 5
    else:
        data, steps = data.repeat(2), 5
    found = classifier().fit(data, epochs=2, steps_per_epoch=steps, verbose=0).history
    assert_same(found, of_arrays(epochs=2))


def test_several_steps_per_execution_give_the_same() -> None:
    model = classifier(steps_per_execution=2)
    assert_same(model.fit(DATA.batch(16), epochs=2, verbose=0).history, of_arrays(epochs=2))
    np.testing.assert_allclose(
        model.predict(DATA.batch(16), verbose=0), model.predict(X, verbose=0), rtol=1e-5
    )


def test_the_progress_bar_has_a_total(capsys: pytest.CaptureFixture[str]) -> None:
    classifier().fit(DATA.batch(16), verbose=2)
    assert "5/5" in capsys.readouterr().out


@pytest.mark.parametrize("kind", ["sparse", "column", "one-hot"])
def test_class_weights_apply_to_datasets(kind: str) -> None:
    targets = {"sparse": Y, "column": Y[:, None], "one-hot": np.eye(2, dtype=np.float32)[Y]}[kind]
    model = classifier()
    if kind == "one-hot":
        model.compile("sgd", tf.keras.losses.CategoricalCrossentropy(from_logits=True))
    weights = np.where(Y == 1, 3.0, 1.0)
    data = tf.data.Dataset.from_tensor_slices((X, targets)).batch(70)
    found = model.fit(data, class_weight={1: 3.0}, verbose=0).history["loss"]
    model.set_weights(WEIGHTS)
    expected = model.evaluate(X, targets, sample_weight=weights, batch_size=70, verbose=0)
    np.testing.assert_allclose(found[0], np.ravel(expected)[0], rtol=1e-5)


def test_sample_weights_are_the_third_part() -> None:
    weights = np.linspace(0, 2, 70, dtype=np.float32)
    data = tf.data.Dataset.from_tensor_slices((X, Y, weights)).batch(16)
    expected = classifier().fit(X, Y, 16, sample_weight=weights, shuffle=False, verbose=0)
    assert_same(classifier().fit(data, verbose=0).history, expected.history)
    with pytest.raises(ValueError, match="the dataset has sample weights"):
        classifier().fit(data, class_weight={0: 1.0}, verbose=0)


def test_inputs_may_be_dicts_and_outputs_several() -> None:
    layers = tf.keras.layers
    a, b = layers.Input((5,), name="a"), layers.Input((5,), name="b")
    outputs = {"sum": layers.Dense(1, name="sum")(a + b), "own": layers.Dense(1, name="own")(b)}
    model = tf.keras.Model({"a": a, "b": b}, outputs)
    model.compile("sgd", "mse")
    start = model.get_weights()
    given = ({"a": X, "b": 2 * X}, {"sum": X[:, :1], "own": X[:, 1:2]})
    data = tf.data.Dataset.from_tensor_slices(given).batch(16)
    found = model.fit(data, verbose=0).history
    predicted = model.predict(data, verbose=0)
    np.testing.assert_allclose(
        predicted["sum"], model.predict(given[0], verbose=0)["sum"], rtol=1e-4, atol=1e-6
    )
    model.set_weights(start)
    assert_same(found, model.fit(*given, batch_size=16, shuffle=False, verbose=0).history)


def test_evaluate_and_predict_keep_the_order() -> None:
    model = classifier()
    data = DATA.batch(16)
    expected = model.evaluate(X, Y, batch_size=16, verbose=0, return_dict=True)
    found = model.evaluate(data, verbose=0, return_dict=True)
    assert found == pytest.approx(expected, rel=1e-5)
    alone = data.map(lambda x, y: x)
    np.testing.assert_allclose(model.predict(alone, verbose=0), model.predict(X, verbose=0), 1e-5)


def recorded(model_input: tuple[int, ...] | None, data: Any, **settings: Any) -> list[list[float]]:
    """Return the rows of each batch that `fit` trains on."""
    seen: list[list[float]] = []
    layers = [Rows(seen), tf.keras.layers.Dense(1)]
    if model_input is not None:
        layers.insert(0, tf.keras.layers.Input(model_input))
    model = tf.keras.Sequential(layers)
    model.compile("sgd", "mse")
    model.fit(data, verbose=0, **settings)
    return seen


@pytest.mark.parametrize("is_built", [True, False])
def test_epochs_see_the_orders_of_a_plain_loop(is_built: bool) -> None:
    def data() -> Any:
        rows = np.arange(12, dtype=np.float32)[:, None]
        shuffled = tf.data.Dataset.from_tensor_slices((rows, rows)).shuffle(12, seed=3)
        return shuffled.batch(5)

    plain = data()
    loop = [x[:, 0].tolist() for _ in range(3) for x, _ in plain]
    assert recorded((1,) if is_built else None, data(), epochs=3) == loop


def test_a_pass_of_fit_fills_a_cache() -> None:
    calls: list[int] = []

    def rows() -> Any:
        calls.append(1)
        yield from ((np.float32([i]), np.float32([i])) for i in range(4))

    spec = (tf.TensorSpec([1]), tf.TensorSpec([1]))
    data = tf.data.Dataset.from_generator(rows, output_signature=spec)
    counted = data.apply(tf.data.experimental.assert_cardinality(4)).cache().batch(2)
    recorded((1,), counted, epochs=3)
    assert len(calls) == 1


def test_an_infinite_dataset_continues_in_the_next_epoch() -> None:
    rows = np.arange(8, dtype=np.float32)[:, None]
    data = tf.data.Dataset.from_tensor_slices((rows, rows)).repeat().batch(3)
    seen = recorded((1,), data, epochs=2, steps_per_epoch=2)
    assert seen == [[0, 1, 2], [3, 4, 5], [6, 7, 0], [1, 2, 3]]


def test_callbacks_can_stop_training() -> None:
    class Stop(tf.keras.callbacks.Callback):
        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            self.model.stop_training = batch == 1

    history = classifier().fit(DATA.batch(16), epochs=5, verbose=0, callbacks=[Stop()])
    assert len(history.epoch) == 1


@pytest.mark.parametrize("is_built", [True, False])
def test_a_dataset_without_batches_is_an_error(is_built: bool) -> None:
    model = classifier()
    if not is_built:
        model = tf.keras.Sequential([tf.keras.layers.Dense(2)])
        model.compile("sgd", "mse")
    with pytest.raises(ValueError, match=r"(?s)The dataset has no batches.*test_fitting.py"):
        model.fit(DATA.take(0).batch(2), verbose=0)


def test_targets_beside_a_dataset_are_an_error() -> None:
    with pytest.raises(ValueError, match="`y` should not be passed"):
        classifier().fit(DATA.batch(2), Y, verbose=0)


def test_text_says_what_to_do() -> None:
    data = tf.data.Dataset.from_tensor_slices((["a", "b"], [0, 1])).batch(2)
    with pytest.raises(TypeError, match=r"(?s)takes numbers, but component .*StringLookup"):
        classifier().fit(data, verbose=0)


def test_ids_that_do_not_fit_into_32_bits_are_an_error() -> None:
    data = tf.data.Dataset.from_tensor_slices((X[:2], np.array([2**40, 1]))).batch(2)
    with pytest.raises(tf.errors.InvalidArgumentError, match="int32"):
        classifier().fit(data, verbose=0)
