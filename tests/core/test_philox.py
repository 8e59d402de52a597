import jax
import jax.numpy as jnp
import numpy as np

from evenfeed.core.randomness.philox import scrambled


def test_a_traced_stream_is_one_round_in_a_loop() -> None:
    # XLA needs minutes for ten rounds in a row, so a map that draws by a seed of its element seemed to hang.
    def words(seed: jax.Array) -> jax.Array:
        return scrambled(jnp, seed).words(8)

    seed = np.arange(4, dtype=np.uint32)
    steps = jax.make_jaxpr(words)(seed).eqns

    assert len(steps) < 100
    np.testing.assert_array_equal(jax.jit(words)(seed), scrambled(np, seed).words(8))
