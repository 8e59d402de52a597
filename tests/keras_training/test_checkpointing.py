"""`train.Checkpoint` saves and restores Keras models, optimizers and metrics."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.keras_training.models import DATA

import evenfeed as tf


def made() -> Any:
    """Return a model whose parts Keras names anew each time."""
    layers = tf.keras.layers
    inner = tf.keras.Sequential([layers.Dense(3), layers.BatchNormalization(), layers.Dropout(0.5)])
    model = tf.keras.Sequential([layers.Input((5,)), inner, layers.Dense(1)])
    model.compile(tf.keras.optimizers.Adam(0.1), "mse")
    model.optimizer.build(model.trainable_variables)
    return model


def values(model: Any) -> list[Any]:
    return [np.array(v.value) for v in (*model.variables, *model.optimizer.variables)]


def test_another_build_of_a_model_gets_all_of_its_state(tmp_path: Path) -> None:
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    model, metric = made(), tf.keras.metrics.Mean()
    model.fit(DATA.batch(32), verbose=0)
    metric.update_state([1.0, 3.0])
    saved = tf.train.Checkpoint(model=model, optimizer=model.optimizer, metric=metric)
    path = saved.save(tmp_path / "ckpt")
    with strategy.scope():
        again, other = made(), tf.keras.metrics.Mean()
    checkpoint = tf.train.Checkpoint(model=again, optimizer=again.optimizer, metric=other)
    checkpoint.restore(path).assert_consumed()
    for found, expected in zip(values(again), values(model), strict=True):
        np.testing.assert_array_equal(found, expected)
    assert {v.value.sharding for v in again.variables} == {strategy.sharding()}
    assert float(other.result()) == 2.0
    again.fit(DATA.batch(32), verbose=0)


class Subclassed(tf.keras.Model):
    """A model without a `build` of its own: its layers are built when it is called."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = tf.keras.layers.Dense(3), tf.keras.layers.Dense(1)

    def call(self, x: Any) -> Any:
        return self.last(self.first(x))


def sequential() -> Any:
    return tf.keras.Sequential([tf.keras.layers.Dense(3), tf.keras.layers.Dense(1)])


@pytest.mark.parametrize(
    ("way", "made_by"),
    [
        ("called", Subclassed),
        ("called", sequential),
        ("in a function", Subclassed),
        ("in a function", sequential),
        ("built", sequential),
        ("evaluated", Subclassed),
        ("evaluated", sequential),
    ],
)
def test_what_is_built_later_is_restored_then(tmp_path: Path, way: str, made_by: Any) -> None:
    x, y = np.ones((4, 5), np.float32), np.ones((4, 1), np.float32)
    model, optimizer = made_by(), tf.keras.optimizers.Adam(0.1)
    model.compile(optimizer, "mse")
    model.fit(x, y, verbose=0)
    path = tf.train.Checkpoint(model=model, optimizer=optimizer).save(tmp_path / "ckpt")
    again, other = made_by(), tf.keras.optimizers.Adam(0.5)
    status = tf.train.Checkpoint(model=again, optimizer=other).restore(path)
    with pytest.raises(AssertionError, match="model/"):
        status.assert_consumed()
    status.expect_partial()
    again.compile(other, "mse")
    if way == "evaluated":
        again.evaluate(x, y, verbose=0)
    elif way == "built":
        again.build((None, 5))
    else:
        call = tf.function(again) if way == "in a function" else again
        np.testing.assert_allclose(call(x), model(x), rtol=1e-6)
    for found, expected in zip(again.weights, model.weights, strict=True):
        np.testing.assert_array_equal(found.value, expected.value)
    if way == "called":
        other.build(again.trainable_variables)
        status.assert_consumed()
        assert float(other.learning_rate.value) == pytest.approx(0.1)
        for found, expected in zip(other.variables, optimizer.variables, strict=True):
            np.testing.assert_array_equal(found.value, expected.value)


def test_what_has_no_variables_yet_is_saved_without(tmp_path: Path) -> None:
    checkpoint = tf.train.Checkpoint(model=sequential(), optimizer=tf.keras.optimizers.SGD(0.25))
    path = checkpoint.save(tmp_path / "ckpt")
    names = [name for name, _ in tf.train.list_variables(path)]
    assert [name.partition("/.")[0] for name in names if name.startswith(("model", "opt"))] == [
        "optimizer/0",
        "optimizer/1",
    ]


def test_another_shape_is_an_error(tmp_path: Path) -> None:
    def dense(units: int) -> Any:
        return tf.keras.Sequential([tf.keras.layers.Input((5,)), tf.keras.layers.Dense(units)])

    path = tf.train.Checkpoint(model=dense(2)).save(tmp_path / "ckpt")
    with pytest.raises(ValueError, match=r"(?s)shape \(5, 3\).*shape \(5, 2\)"):
        tf.train.Checkpoint(model=dense(3)).restore(path)


class Branched(tf.keras.layers.Layer):
    """A layer whose parts are attributes, alone and in a list, a tuple and a dict.

    Args:
        swapped: Creates `left` and `right` in the other order.
    """

    def __init__(self, *, swapped: bool = False) -> None:
        super().__init__()
        for name in ("right", "left") if swapped else ("left", "right"):
            setattr(self, name, tf.keras.layers.Dense(2))
        self.again = self.left
        self._hidden = tf.keras.layers.Dense(2)
        self.blocks = [tf.keras.layers.Dense(2), (tf.keras.layers.Dense(2),)]
        self.heads = {"a": tf.keras.layers.Dense(2)}
        self.numbered = {7: tf.keras.layers.Dense(2)}

    def build(self, shape: Any) -> None:
        self.scale = self.add_weight(shape=(2,), initializer="uniform", name="weight")
        self.pairs = [self.add_weight(shape=(2,), initializer="uniform") for _ in range(2)]

    def call(self, x: Any) -> Any:
        x = self.right(self.left(x)) * self.scale + self.pairs[0] * self.pairs[1]
        (inner,) = self.blocks[1]
        return self.numbered[7](self.heads["a"](inner(self.blocks[0](self._hidden(x)))))


def test_parts_of_a_layer_have_the_names_of_their_attributes(tmp_path: Path) -> None:
    layer = Branched()
    layer(np.ones((1, 2), np.float32))
    path = tf.train.Checkpoint(layer=layer).save(tmp_path / "ckpt")
    names = {name.partition("/.")[0] for name, _ in tf.train.list_variables(path)}
    dense = {
        f"layer/{part}/{value}"
        for part in ("left", "right", "_hidden", "blocks/0", "blocks/1/0", "heads/a", "layer_6")
        for value in ("kernel", "bias")
    }
    assert names - dense == {"layer/scale", "layer/pairs/0", "layer/pairs/1", "save_counter"}
    assert dense <= names


def test_layers_created_in_another_order_get_their_own_values(tmp_path: Path) -> None:
    x = np.ones((1, 2), np.float32)
    layer, other = Branched(), Branched(swapped=True)
    expected = layer(x)
    path = tf.train.Checkpoint(layer=layer).save(tmp_path / "ckpt")
    other(x)
    tf.train.Checkpoint(layer=other).restore(path).assert_consumed()
    np.testing.assert_array_equal(other(x), expected)
    np.testing.assert_array_equal(other.left.kernel, layer.left.kernel)


def test_a_part_of_a_model_is_restored_by_its_names(tmp_path: Path) -> None:
    model = Subclassed()
    model(np.ones((1, 5), np.float32))
    path = tf.train.Checkpoint(net=model).save(tmp_path / "ckpt")
    bias, kernel = tf.Variable(tf.ones([3])), tf.Variable(tf.ones([5, 3]))
    first = tf.train.Checkpoint(bias=bias)
    status = tf.train.Checkpoint(net=tf.train.Checkpoint(first=first)).restore(path)
    status.assert_existing_objects_matched()
    np.testing.assert_array_equal(bias, np.zeros(3))
    first.kernel = kernel
    np.testing.assert_array_equal(kernel, model.first.kernel)
    status.expect_partial()


class WithOwn(tf.keras.Model):
    """A model that holds a layer of Keras, and variables of evenfeed alone, in a list and in a module."""

    def __init__(self, value: float) -> None:
        super().__init__()
        self.scale = tf.Variable(value)
        self.shifts = [tf.Variable(value + 1), tf.keras.layers.Dense(1)]
        self.inner = tf.Module()
        self.inner.weight = tf.Variable(value + 2)
        self.draws = tf.random.Generator.from_seed(int(value))

    def call(self, x: Any) -> Any:
        return self.shifts[1](x) * self.scale + self.shifts[0] + self.inner.weight


@pytest.mark.parametrize("called", [True, False])
def test_variables_of_evenfeed_in_a_model_are_saved(tmp_path: Path, called: bool) -> None:
    model, again, x = WithOwn(1.0), WithOwn(5.0), np.ones((2, 3), np.float32)
    if called:
        expected = model(x)
    path = tf.train.Checkpoint(model=model).save(tmp_path / "ckpt")
    status = tf.train.Checkpoint(model=again).restore(path)
    held = [again.scale, again.shifts[0], again.inner.weight]
    assert [variable.numpy() for variable in held] == [1.0, 2.0, 3.0]
    assert float(again.draws.normal([])) == float(model.draws.normal([]))
    if called:
        np.testing.assert_array_equal(again(x), expected)
        status.assert_consumed()
