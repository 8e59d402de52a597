import subprocess
import sys

import jax
import jax.numpy as real_jnp

from evenfeed.core import lazy_jax


def test_the_lazy_jax_has_the_names_of_jax():
    assert lazy_jax.jnp.square is real_jnp.square
    assert lazy_jax.jax.Array is jax.Array
    assert lazy_jax.jax.numpy.int8 is real_jnp.int8


def test_settings_are_read_every_time():
    before = lazy_jax.jax.config.jax_enable_x64
    with jax.enable_x64(not before):
        assert lazy_jax.jax.config.jax_enable_x64 is not before


def test_a_name_that_jax_lacks_is_an_attribute_error():
    assert not hasattr(lazy_jax.jnp, "no_such_name")


def test_loading_jax_leaves_the_random_generators_where_they_were():
    program = """
import random, warnings
import numpy as np
warnings.simplefilter("error")  # a function that draws would be warned about
random.seed(1)
np.random.seed(1)
expected = random.Random(1).random(), np.random.RandomState(1).rand()
import evenfeed as tf
words = tf.data.Dataset.from_tensor_slices(["a b", "b"])
found = words.map(lambda t: tf.argmax(tf.strings.split(t)[-1] == ["a", "b"]))
assert [int(x) for x in found] == [1, 1]
import sys
assert "jax" in sys.modules
assert (random.random(), np.random.rand()) == expected
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=100)
