"""Steps of users in `fit`, as TensorFlow's guide writes them: `train_step(self, data)` with a tape."""

import numpy as np
import pytest
from tests.mirroring import WAYS, each, mirrored, parts, run

import evenfeed as tf

keras = tf.keras
X = np.linspace(-1, 1, 24, dtype=np.float32).reshape(8, 3)
Y = X.sum(axis=1, keepdims=True) ** 2


class _Stepping(keras.Model):
    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            found = self(x, training=True)
            loss = self.compute_loss(y=y, y_pred=found)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply(gradients, self.trainable_variables)
        return self._noted(loss, y, found)

    def test_step(self, data):
        x, y = data
        found = self(x, training=False)
        return self._noted(self.compute_loss(y=y, y_pred=found), y, found)

    def _noted(self, loss, y, found):
        for metric in self.metrics:
            if metric.name == "loss":
                metric.update_state(loss)
            else:
                metric.update_state(y, found)
        return {metric.name: metric.result() for metric in self.metrics}


class _Extending(keras.Model):
    def train_step(self, data):
        logs = super().train_step(data)
        return {**logs, "twice": logs["loss"] * 2}

    def test_step(self, data):
        return super().test_step(data=data)

    def predict_step(self, data):
        return super().predict_step(data) * 2


class _Predicting(keras.Model):
    def predict_step(self, data):
        x, _ = data
        return self(x, training=False) * 2


def _made(kind, **options):
    keras.utils.set_random_seed(0)
    given = keras.Input((3,))
    hidden = keras.layers.BatchNormalization()(keras.layers.Dense(4, activation="tanh")(given))
    model = kind(given, keras.layers.Dense(1)(hidden))
    model.compile(keras.optimizers.Adam(0.1), "mse", metrics=["mae"], **options)
    return model


def _trained(model):
    data = tf.data.Dataset.from_tensor_slices((X, Y)).batch(4)
    history = model.fit(data, epochs=2, validation_data=data, verbose=0).history
    return [np.asarray(history[name]) for name in sorted(history)], model.get_weights()


@pytest.mark.parametrize("way", ["compiled", "eager", "replicas"])
def test_a_step_with_a_tape_trains_as_keras_does(way):
    wanted = _trained(_made(keras.Model))
    if way == "replicas":
        with mirrored(2).scope():
            model = _made(_Stepping)
    else:
        model = _made(_Stepping, run_eagerly=way == "eager")
    for group, own in zip(_trained(model), wanted, strict=True):
        for found, expected in zip(group, own, strict=True):
            np.testing.assert_allclose(found, expected, 1e-4, 1e-5)
    assert "train_step" not in vars(model)


@pytest.mark.parametrize("way", ["compiled", "eager", "replicas"])
def test_steps_extend_those_of_keras(way):
    (loss, mae, val_loss, val_mae), weights = _trained(_made(keras.Model))
    if way == "replicas":
        with mirrored(2).scope():
            model = _made(_Extending)
    else:
        model = _made(_Extending, run_eagerly=way == "eager")
    found, own = _trained(model)
    for one, other in zip(found, (loss, mae, loss * 2, val_loss, val_mae), strict=True):
        np.testing.assert_allclose(one, other, 1e-4, 1e-5)
    for one, other in zip(own, weights, strict=True):
        np.testing.assert_allclose(one, other, 1e-4, 1e-5)
    np.testing.assert_allclose(model.predict(X, batch_size=3, verbose=0), model(X) * 2, 1e-4, 1e-5)
    np.testing.assert_allclose(model.predict_on_batch(X), model(X) * 2, 1e-4, 1e-5)
    assert not {"train_step", "test_step", "predict_step"} & vars(model).keys()


def test_a_predict_step_takes_data_alone():
    model = _made(_Predicting)
    data = tf.data.Dataset.from_tensor_slices((X, Y)).batch(3)
    np.testing.assert_allclose(model.predict(data, verbose=0), model(X) * 2, 1e-5, 1e-6)


@pytest.mark.parametrize("name", ["train_step", "test_step", "predict_step"])
def test_a_step_of_keras_outside_of_fit_says_what_to_write(name):
    with pytest.raises(RuntimeError, match="train_on_batch"):
        getattr(_made(keras.Model), name)((X, Y))


@pytest.mark.parametrize("way", WAYS)
def test_a_loss_scale_doubles_and_halves_on_replicas_and_changes_no_result(way):
    strategy = mirrored(2)
    alone, scaled = (
        keras.optimizers.SGD(0.1),
        keras.optimizers.LossScaleOptimizer(
            keras.optimizers.SGD(0.1), initial_scale=8.0, dynamic_growth_steps=1
        ),
    )
    models = [_made(keras.Model) for _ in range(2)]

    def step(x):
        for model, optimizer in zip(models, (alone, scaled), strict=True):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(model(x) ** 2)
                loss = optimizer.scale_loss(loss)
            gradients = tape.gradient(loss, model.trainable_variables)
            optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))
        return loss

    halves = each(strategy, lambda i: tf.constant(X[4 * int(i) : 4 * int(i) + 4]))
    parts(strategy, run(way, strategy, step, halves))
    assert float(scaled.dynamic_scale.value) == 16
    before = models[1].get_weights()
    for one, other in zip(models[0].get_weights(), before, strict=True):
        np.testing.assert_allclose(one, other, 1e-4, 1e-6)
    scaled.apply([v.value * np.nan for v in models[1].trainable_variables])
    assert float(scaled.dynamic_scale.value) == 8
    for one, other in zip(models[1].get_weights(), before, strict=True):
        np.testing.assert_array_equal(one, other)


class _Adversaries(keras.Model):
    """The GAN of the Keras guide "Customizing what happens in fit": it has no `call`, and an optimizer for each part."""

    def __init__(self, parts_are_built):
        super().__init__()
        given = keras.layers.Dense(4, activation="tanh", kernel_initializer="ones")
        first = [keras.Input((3,))] if parts_are_built else []
        self.judge = keras.Sequential(
            [*first, given, keras.layers.Dense(1, kernel_initializer="ones")]
        )
        self.maker = keras.Sequential([*first, keras.layers.Dense(3, kernel_initializer="ones")])
        self.judged = keras.metrics.Mean(name="judged")
        self.made = keras.metrics.Mean(name="made")

    def compile(self, **options):
        super().compile(**options)
        self.for_judge, self.others = keras.optimizers.Adam(0.1), [keras.optimizers.Adam(0.1)]

    @property
    def metrics(self):
        return [self.judged, self.made]

    def _both(self, real):
        noise = tf.ones((tf.shape(real)[0], 3)) * 0.5
        made = self.judge(self.maker(noise))
        return tf.reduce_mean((self.judge(real) - 1) ** 2 + made**2), tf.reduce_mean(
            (made - 1) ** 2
        )

    def train_step(self, data):
        pairs = (self.judge, self.for_judge, self.judged), (self.maker, self.others[0], self.made)
        for index, (part, optimizer, metric) in enumerate(pairs):
            with tf.GradientTape() as tape:
                loss = self._both(data)[index]
            variables = part.trainable_variables
            optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
            metric.update_state(loss)
        return {metric.name: metric.result() for metric in self.metrics}

    def test_step(self, data):
        for metric, loss in zip(self.metrics, self._both(data), strict=True):
            metric.update_state(loss)
        return {metric.name: metric.result() for metric in self.metrics}


@pytest.mark.parametrize("way", ["compiled", "unbuilt", "eager", "replicas"])
def test_a_model_without_call_trains_with_an_optimizer_for_each_part(way):
    alone = _Adversaries(parts_are_built=True)
    alone.compile()
    wanted = []
    for _ in range(3):
        alone.reset_metrics()
        wanted.append([float(alone.train_step(X[i : i + 4])["made"]) for i in (0, 4)][-1])
    data = tf.data.Dataset.from_tensor_slices(X).batch(4)
    strategy = mirrored(2 if way == "replicas" else 1)
    with strategy.scope():
        model = _Adversaries(parts_are_built=way != "unbuilt")
        model.compile(run_eagerly=way == "eager")
    found = model.fit(data, epochs=3, validation_data=data, verbose=0).history
    np.testing.assert_allclose(found["made"], wanted, 1e-4, 1e-5)
    for optimizer in (model.for_judge, *model.others):
        assert int(optimizer.iterations.numpy()) == 6
    own = alone.others[0].variables
    for one, other in zip(model.others[0].variables, own, strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), 1e-4, 1e-5)
    tested = model.evaluate(data, verbose=0, return_dict=True)
    assert tested["made"] == pytest.approx(found["val_made"][-1])
