"""Allows copies to devices, whatever JAX's guard says: those of a feed are asked for, not implicit."""

from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import Any, Final

from evenfeed.core.lazy_jax import jax

# The settings of the guard that let copies pass without a word.
_ALLOWED: Final = (None, "allow")


@cache
def _config() -> Any:
    # Cached, because the lazy module would look up jax.config at each call.
    return jax.config


def are_allowed() -> bool:
    """Return True if JAX allows copies to devices right now."""
    return _config().jax_transfer_guard_host_to_device in _ALLOWED


def transfers_allowed() -> AbstractContextManager[Any]:
    """Return a context manager in which JAX allows copies to devices.

    It changes no setting without need: that would slow down the call of the next program.
    """
    return nullcontext() if are_allowed() else jax.transfer_guard_host_to_device("allow")
