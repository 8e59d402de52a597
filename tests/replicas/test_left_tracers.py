"""Functions that assign to objects while they are traced: an error, and the object keeps its array."""

import functools
import warnings

import jax.numpy as jnp
import numpy as np
import pytest
from tests.mirroring import each, mirrored

import evenfeed as tf

total = jnp.zeros(())


class Trainer:
    def __init__(self):
        self.w = jnp.zeros(())
        self.host = np.zeros(())
        self.params = {"w": [jnp.zeros(())]}
        self.last = None
        self.log = []

    def attribute(self, x):
        self.w = self.w + x.sum()
        return x

    def array_of_the_host(self, x):
        self.host = self.host + x.sum()
        return x

    def item(self, x):
        self.params["w"][0] = self.params["w"][0] + x.sum()
        return x

    def by_a_helper(self, x):
        add_to(self, x)
        return x

    def new_attribute(self, x):
        self.last = x
        return x

    def append(self, x):
        self.log.append(x)
        return x


def add_to(trainer, x):
    trainer.w = trainer.w + x.sum()


def set_global(x):
    global total  # noqa: PLW0603 - that is what is tested
    total = total + x.sum()
    return x


def set_in_closure():
    held = jnp.zeros(())

    def step(x):
        nonlocal held
        held = held + x.sum()
        return x

    return step


def set_an_argument(x, trainer):
    trainer.w = trainer.w + x.sum()
    return x


CHANGES = {
    "self.w": lambda: Trainer().attribute,
    "self.host": lambda: Trainer().array_of_the_host,
    "self.params['w'][0]": lambda: Trainer().item,
    "self.w ": lambda: Trainer().by_a_helper,
    "total": lambda: set_global,
    "held": set_in_closure,
    "Trainer.w": lambda: functools.partial(set_an_argument, trainer=Trainer()),
}


def alone(fn):
    tf.function(fn)(jnp.ones(2))


def around_run(fn):
    strategy = mirrored(2)
    x = each(strategy, lambda r: jnp.ones(2))
    tf.function(lambda x: strategy.run(fn, args=(x,)))(x)


def on_uneven_parts(fn):
    strategy = mirrored(2)
    x = each(strategy, lambda r: jnp.ones(2 + r))
    tf.function(lambda x: strategy.run(fn, args=(x,)))(x)


def in_run(fn):
    strategy = mirrored(2)
    strategy.run(tf.function(fn), args=(each(strategy, lambda r: jnp.ones(2)),))


# A function that assigns a variable of an enclosing function runs as plain Python if only `run` would compile it.
CASES = [
    (way, name)
    for way in (alone, around_run, on_uneven_parts, in_run)
    for name in CHANGES
    if (way, name) != (in_run, "held")
]


@pytest.mark.parametrize(("way", "name"), CASES)
def test_setting_what_held_an_array_is_an_error_that_names_it(way, name):
    with pytest.raises(
        ValueError, match=r"while it is traced\. The new value exists only"
    ) as caught:
        way(CHANGES[name]())
    said = str(caught.value).splitlines()[0]
    assert name.strip() in said or "[1].w" in said  # a partial has no names for its arguments


def test_the_array_is_put_back():
    trainer = Trainer()
    for step in (trainer.attribute, trainer.item):
        with pytest.raises(ValueError, match="while it is traced"):
            tf.function(step)(jnp.ones(2))
    assert float(trainer.w) == 0.0
    assert float(trainer.params["w"][0]) == 0.0


def test_an_object_among_the_arguments_is_looked_at():
    with pytest.raises(ValueError, match=r"sets Trainer\.w while it is traced"):
        tf.function(set_an_argument)(jnp.ones(2), Trainer())


@pytest.mark.parametrize("way", [alone, around_run, in_run])
@pytest.mark.parametrize("what", ["new_attribute", "append"])
def test_a_tensor_that_is_left_elsewhere_is_warned_of_once(what, way):
    step = getattr(Trainer(), what)
    with pytest.warns(UserWarning, match=f"{what} leaves a tracer in self") as caught:
        way(step)
    assert len(caught) == 1
    assert caught[0].lineno == getattr(Trainer, what).__code__.co_firstlineno


def test_plain_python_may_set_what_it_likes():
    strategy, trainer = mirrored(2), Trainer()
    strategy.run(lambda x: trainer.log.append(float(x.sum())), args=(jnp.ones(2),))
    assert trainer.log == [2.0, 2.0]


def test_what_is_no_tensor_may_be_set_while_a_function_is_traced():
    counts = {"traces": 0, "shape": None}

    @tf.function
    def step(x):
        counts["traces"] += 1
        counts["shape"] = x.shape
        return x

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        step(jnp.ones(2))
    assert counts == {"traces": 1, "shape": (2,)}


def test_variables_may_be_assigned():
    class Holder:
        def __init__(self):
            self.v = tf.Variable(0.0)

        @tf.function
        def add(self, x):
            return self.v.assign_add(tf.cast(x.sum(), tf.float32))

    holder = Holder()
    for _ in range(2):
        holder.add(jnp.ones(2))
    assert holder.v.numpy() == 4.0
