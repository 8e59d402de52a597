"""The one lazy door to JAX: the modules below are loaded when something of theirs is first used.

`import evenfeed` and a process that only reads data must not pay for JAX (about a second and a
runtime full of threads). import-linter allows this module to the few places that compute.
"""

from typing import TYPE_CHECKING

from evenfeed.core.doors import Door

__all__ = [
    "checkify",
    "jax",
    "jax_ad",
    "jax_batching",
    "jax_extend_core",
    "jax_mlir",
    "jax_tree",
    "jnp",
]

if TYPE_CHECKING:
    import jax
    import jax.extend.core as jax_extend_core
    import jax.interpreters.ad as jax_ad
    import jax.interpreters.batching as jax_batching
    import jax.interpreters.mlir as jax_mlir
    import jax.numpy as jnp
    import jax.tree_util as jax_tree
    from jax.experimental import checkify
else:
    jax = Door("jax")
    jax_extend_core = Door("jax.extend.core")
    jax_ad = Door("jax.interpreters.ad")
    jax_batching = Door("jax.interpreters.batching")
    jax_mlir = Door("jax.interpreters.mlir")
    jnp = Door("jax.numpy")
    jax_tree = Door("jax.tree_util")
    checkify = Door("jax.experimental.checkify")
