"""What JAX checks while it computes, and how it shows errors: parts of `tf.debugging`."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from typing import Final

from evenfeed.core.lazy_jax import jax

_CHECKS: Final = ("jax_debug_nans", "jax_debug_infs")
_FILTERING: Final = "jax_traceback_filtering"


def enable_check_numerics(stack_height_limit: int = 30, path_length_limit: int = 50) -> None:
    """Raise FloatingPointError at the first operation whose result has a NaN or an infinity.

    Compiled functions run again, operation by operation, to find it. Use it for debugging: it is slow.

    Args:
        stack_height_limit: Accepted for compatibility; ignored: Python shows the lines.
        path_length_limit: Accepted for compatibility; ignored.

    Examples:
        >>> import evenfeed as tf
        >>> tf.debugging.enable_check_numerics()
        >>> tf.debugging.disable_check_numerics()
    """
    del stack_height_limit, path_length_limit
    for check in _CHECKS:
        jax.config.update(check, True)
    jax.clear_caches()  # JAX does not check programs that were compiled before


def disable_check_numerics() -> None:
    """Undo `enable_check_numerics`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.debugging.disable_check_numerics()
    """
    for check in _CHECKS:
        jax.config.update(check, False)


def enable_traceback_filtering() -> None:
    """Hide the lines of JAX in tracebacks, which is the default.

    Examples:
        >>> import evenfeed as tf
        >>> tf.debugging.enable_traceback_filtering()
    """
    jax.config.update(_FILTERING, "auto")


def disable_traceback_filtering() -> None:
    """Show the lines of JAX in tracebacks.

    Examples:
        >>> import evenfeed as tf
        >>> tf.debugging.disable_traceback_filtering()
        >>> tf.debugging.enable_traceback_filtering()
    """
    jax.config.update(_FILTERING, "off")


def is_traceback_filtering_enabled() -> bool:
    """Return True if tracebacks hide the lines of JAX.

    Examples:
        >>> import evenfeed as tf
        >>> tf.debugging.is_traceback_filtering_enabled()
        True
    """
    return getattr(jax.config, _FILTERING) != "off"
