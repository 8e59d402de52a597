"""Checkpoints of Keras models: the names of the parts, and restoring some of them."""

import os
import tempfile

import numpy as np


def _network(tf, order):
    class Network(tf.keras.Model):
        def __init__(self):
            super().__init__()
            for name in order:
                setattr(self, name, tf.keras.layers.Dense(2))
            self._hidden = tf.keras.layers.Dense(2)

        def call(self, x):
            return self._hidden(self.last(self.first(x)))

    network = Network()
    network(np.ones((1, 2), np.float32))
    for place, layer in enumerate([network.first, network.last]):
        layer.bias.assign([place + 1.0, place + 2.0])
    return network


def _saved(tf, folder, network):
    return tf.train.Checkpoint(net=network).save(os.path.join(folder, "ckpt"))


def names(tf, ask):
    with tempfile.TemporaryDirectory() as folder:
        path = _saved(tf, folder, _network(tf, ("first", "last")))
        found = [name for name, _ in tf.train.list_variables(path)]
        return {"biases": sorted(name.partition("/.")[0] for name in found if "/bias/" in name)}


def another_order(tf, ask):
    with tempfile.TemporaryDirectory() as folder:
        path = _saved(tf, folder, _network(tf, ("first", "last")))
        other = _network(tf, ("last", "first"))
        other.first.bias.assign([0.0, 0.0])
        other.last.bias.assign([0.0, 0.0])
        tf.train.Checkpoint(net=other).restore(path).assert_existing_objects_matched()
        return {
            "first": other.first.bias.numpy().tolist(),
            "last": other.last.bias.numpy().tolist(),
        }


def some_of_it(tf, ask):
    with tempfile.TemporaryDirectory() as folder:
        path = _saved(tf, folder, _network(tf, ("first", "last")))
        bias = tf.Variable([0.0, 0.0])
        last = tf.train.Checkpoint(bias=bias)
        status = tf.train.Checkpoint(net=tf.train.Checkpoint(last=last)).restore(path)
        status.assert_existing_objects_matched()
        status.expect_partial()
        return {"bias": bias.numpy().tolist()}


def variables_without_keras(tf, ask):
    class Line(tf.keras.Model):
        def __init__(self, value):
            super().__init__()
            self.w = tf.Variable(value)
            self.inner = tf.Module()
            self.inner.b = tf.Variable(value + 1)

        def call(self, x):
            return self.w * x + self.inner.b

    with tempfile.TemporaryDirectory() as folder:
        path = _saved(tf, folder, Line(1.0))
        names = sorted(name for name, _ in tf.train.list_variables(path) if name[0] == "n")
        again = Line(5.0)
        tf.train.Checkpoint(net=again).restore(path).assert_consumed()
        return {"names": names, "values": [again.w.numpy(), again.inner.b.numpy()]}
