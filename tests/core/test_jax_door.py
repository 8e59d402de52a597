import jax
import jax.numpy as real_jnp

from evenfeed.core import jax_door


def test_the_door_leads_to_jaxs_own_names():
    assert jax_door.jnp.square is real_jnp.square
    assert jax_door.jax.Array is jax.Array
    assert jax_door.jax.numpy.int8 is real_jnp.int8


def test_settings_are_asked_for_every_time():
    assert "config" not in vars(jax_door.jax)
    before = jax_door.jax.config.jax_enable_x64
    with jax.enable_x64(not before):
        assert jax_door.jax.config.jax_enable_x64 is not before


def test_a_name_that_jax_lacks_is_an_attribute_error():
    assert not hasattr(jax_door.jnp, "no_such_name")
