"""Variables without copies in programs on replicas."""

import gc
from weakref import ref

import jax
import jax.numpy as jnp
import numpy as np
from tests.mirroring import mirrored

import evenfeed as tf
from evenfeed.replicas.function.on_devices import copied_once, on_first_device

TWO = mirrored(2)


def test_a_variable_made_outside_a_scope_is_copied_to_the_replicas_once_for_each_value():
    variable = tf.Variable(np.arange(3.0, dtype="f4"))
    step = tf.function(lambda: TWO.run(lambda: variable * 2.0))
    step()
    with jax.transfer_guard("disallow_explicit"):
        step()
    variable.assign([5.0, 6.0, 7.0])
    first, second = TWO.experimental_local_results(step())
    np.testing.assert_array_equal(first, [10.0, 12.0, 14.0])
    np.testing.assert_array_equal(second, [10.0, 12.0, 14.0])


def test_a_program_on_replicas_that_assigns_such_a_variable_copies_nothing_the_second_time():
    variable = tf.Variable(0.0)

    @tf.function
    def step():
        total = TWO.reduce("sum", TWO.run(lambda: variable + 1.0), axis=None)
        variable.assign(total)

    step()
    with jax.transfer_guard("disallow_explicit"):
        step()
    assert variable.numpy() == 6.0
    assert len(variable.value().sharding.device_set) == 1


def test_copies_are_freed_with_the_value_that_they_are_of():
    replicas = TWO.extended.replicas
    read = jnp.arange(3.0)
    written = on_first_device(replicas.everywhere(read))
    found = [copied_once(replicas, read), copied_once(replicas, written)]
    assert found[0] is copied_once(replicas, read)
    alive = [ref(copies) for copies in found]
    del read, written, found
    gc.collect()
    assert [each() for each in alive] == [None, None]


def test_replicas_on_other_devices_get_copies_of_their_own():
    array = jnp.arange(3.0)
    copied_once(TWO.extended.replicas, array)
    four = mirrored(4).extended.replicas
    assert copied_once(four, array).sharding.device_set == four.device_set
