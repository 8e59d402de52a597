"""The settings of JAX that hold for the code that runs, to hold in other threads too.

`with jax.enable_x64(True):` and its kin hold for one thread: replicas that run in threads of their own
take them over from the one that started them.
"""

# JAX leaves parts of its own types unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from typing import Any, Final

from evenfeed.core.jax_door import jax

# The contexts of JAX's that change one setting; `jax.config` knows each with the prefix `jax_`.
_NAMES: Final = (
    "check_tracer_leaks",
    "debug_infs",
    "debug_key_reuse",
    "debug_nans",
    "default_matmul_precision",
    "default_prng_impl",
    "disable_jit",
    "enable_checks",
    "enable_x64",
    "legacy_prng_key",
    "log_compiles",
    "numpy_dtype_promotion",
    "numpy_rank_promotion",
    "softmax_custom_jvp",
    "threefry_partitionable",
    "transfer_guard_device_to_device",
    "transfer_guard_device_to_host",
    "transfer_guard_host_to_device",
)


def current_settings() -> Callable[[], AbstractContextManager[Any]]:
    """Return what makes the settings that hold here hold in a block of another thread."""
    here = {name: _read(name) for name in _NAMES}

    def taken_over() -> AbstractContextManager[Any]:
        stack = ExitStack()
        for name, value in here.items():
            if _read(name) != value:
                stack.enter_context(getattr(jax, name)(value))
        return stack

    return taken_over


def _read(name: str) -> Any:
    return getattr(jax.config, f"jax_{name}")
