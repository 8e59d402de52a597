"""Which errors mean that a function cannot be traced."""

from evenfeed.core.lazy_jax import jax


def refuses_tracing(error: Exception) -> bool:
    """Return True if `error` means that Python code needs a value that does not exist during a trace."""
    kinds = jax.errors
    return isinstance(
        error,
        (
            kinds.ConcretizationTypeError,
            kinds.TracerArrayConversionError,
            kinds.TracerIntegerConversionError,
            kinds.TracerBoolConversionError,
            kinds.NonConcreteBooleanIndexError,
        ),
    )
