"""Calls Python with the values of tensors, at once or when a compiled function runs."""

import sys
from collections.abc import Callable, Iterator
from typing import Any

from evenfeed.core.lazy_jax import jax
from evenfeed.tensors.creation import is_on_device
from evenfeed.tensors.device_arrays import is_traced, is_tracing


def is_traced_tensor(value: object) -> bool:
    """Return True for a tensor whose values are known only when the compiled function runs."""
    return is_on_device(value) and is_traced(value)


def when_known(call: Callable[[list[Any]], None], tensors: list[Any]) -> None:
    """Call a function with a list of tensors: at once, or each time that the compiled function runs."""
    if not (is_tracing() or any(map(is_traced_tensor, tensors))):
        call(tensors)
        return
    traced = [is_traced_tensor(tensor) for tensor in tensors]

    def arrived(*values: Any) -> None:
        rest: Iterator[Any] = iter(values)
        call(
            [
                next(rest) if is_traced else tensor
                for tensor, is_traced in zip(tensors, traced, strict=True)
            ]
        )

    jax.debug.callback(
        arrived, *(tensor for tensor, late in zip(tensors, traced, strict=True) if late)
    )


def finish_calls() -> None:
    """Wait for the calls of compiled functions that have been started. Raises the error of one that failed, once."""
    try:
        jax.effects_barrier()
    except BaseException:
        # JAX keeps it, and would raise it again at each later wait.
        tokens: Any = getattr(sys.modules.get("jax._src.dispatch"), "runtime_tokens", None)
        if tokens is not None:
            tokens.clear()
        raise
