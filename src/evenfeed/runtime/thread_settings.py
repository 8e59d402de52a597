"""Restores thread-local settings when Ctrl-C interrupts a `with` block that changed them.

`__enter__` and `__exit__` written in Python, in evenfeed and in JAX, can be interrupted at their first instruction
and after each call. The change then stays, and would affect every later call in that thread.
"""

import contextlib
import sys
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, TypeAlias

from evenfeed.core.iteration import reading
from evenfeed.core.randomness import seeds
from evenfeed.core.randomness.random_bits import DRAWS
from evenfeed.core.side_effects import here
from evenfeed.core.traced.kernel_stages import STAGE

# JAX modules are untyped here. Those looked up are loaded together with JAX.
_modules: Final[dict[str, Any]] = sys.modules


ThreadSettings: TypeAlias = tuple[Any, ...]


def thread_settings() -> ThreadSettings:
    """Return a snapshot of this thread's settings."""
    watching = here.watcher, reading.instead, reading.starting, seeds.calling.call
    return watching, DRAWS.get(), STAGE.get(), _jax_settings()


def restore_settings(settings: ThreadSettings, error: BaseException) -> None:
    """Reset the settings to a snapshot, after code that changed them raised `error`."""
    _close_contexts(error.__traceback__)
    watching, draws, stage, jax = settings
    here.watcher, reading.instead, reading.starting, seeds.calling.call = watching
    DRAWS.set(draws)
    STAGE.set(stage)
    _restore_jax(jax)


def _close_contexts(step: TracebackType | None) -> None:
    """Close the generator-based context managers that were interrupted on entry or exit.

    They would continue when the exception is garbage-collected, and change the settings then.
    """
    while step is not None:
        if step.tb_frame.f_code.co_filename == contextlib.__file__:
            with contextlib.suppress(RuntimeError):  # it is still running, and will exit by itself
                step.tb_frame.clear()
        step = step.tb_next


def _jax_settings() -> tuple[Any, ...] | None:
    """Return the settings that tracing changes: 64-bit types, the default device, and the trace itself.

    None if JAX is not loaded.
    """
    found = _readers or _found_readers()
    if found is None:
        return None
    wide, device, tracing = found
    return wide(), device(), tracing.trace, tracing.axis_env


# How to read the settings, as soon as JAX is loaded: every read of an iterator asks for them.
_readers: tuple[Callable[[], Any], Callable[[], Any], Any] | None = None


def _found_readers() -> tuple[Callable[[], Any], Callable[[], Any], Any] | None:
    global _readers  # noqa: PLW0603 - kept once it is known
    tracing = getattr(_modules.get("jax._src.core"), "trace_ctx", None)
    if tracing is None:  # another thread may be loading JAX
        return None
    config = _modules["jax._src.config"]
    _readers = config.enable_x64.get_local, config.default_device.get_local, tracing
    return _readers


def _restore_jax(kept: tuple[Any, ...] | None) -> None:
    """Reset this thread's JAX settings to what `_jax_settings` returned."""
    if kept is None or kept == _jax_settings():
        return
    config, core = _modules["jax._src.config"], _modules["jax._src.core"]
    wide, device, trace, axes = kept
    config.enable_x64.set_local(wide)
    config.default_device.set_local(device)
    core.trace_ctx.set_trace(trace)
    core.trace_ctx.set_axis_env(axes)
