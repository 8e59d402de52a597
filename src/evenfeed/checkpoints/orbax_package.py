"""Loads Orbax, or says how to install it."""

from typing import Any

from evenfeed.core.lazy import installed, orbax_checkpoint
from evenfeed.core.lazy_jax import jax


def orbax() -> Any:
    """Return the module `orbax.checkpoint`. An ImportError names the extra that installs it."""
    _ = jax.Array  # JAX is imported through its own module
    return installed(
        orbax_checkpoint,
        "Checkpoints are stored with Orbax, which is not installed.",
        "pip install 'evenfeed[checkpoint]'.",
    )
