"""Says once per program run that a function is being compiled, if that takes more than two seconds."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, Any, Final, final

from evenfeed.core.callsite import Origin, where_called
from evenfeed.core.lazy import LazyModule, logging

if TYPE_CHECKING:
    from evenfeed.core.concurrency import threads
else:  # not part of `import evenfeed`
    threads = LazyModule("evenfeed.core.concurrency.threads")

_SECONDS: Final = 2.0


@final
class CompileNotice:
    """Watches compilations until one has taken so long that the user was told.

    Args:
        seconds: How long a compilation may take in silence.
    """

    def __init__(self, seconds: float = _SECONDS) -> None:
        self._seconds = seconds
        self._was_logged = False

    @contextmanager
    def watch(self, function: Callable[..., Any]) -> Generator[None]:
        """Log that the function is being compiled if the block takes too long."""
        if self._was_logged:
            yield
            return
        done = Event()
        work = partial(self._wait, done, _name(function), where_called())
        try:
            watcher = threads.background.thread(work, "evenfeed-compile", done.set)
            threads.start_soon((watcher,))
            yield
        finally:
            done.set()

    def _wait(self, done: Event, name: str, origin: Origin | None) -> None:
        if done.wait(self._seconds) or self._was_logged:
            return
        self._was_logged = True
        # A warning, because Python shows no lower level by default.
        logging.getLogger("evenfeed").warning(
            "Compiling %s%s. XLA does this once for each shape of its arguments; later calls are fast.",
            name,
            "" if origin is None else f" (called at {origin})",
        )


def _name(function: Callable[..., Any]) -> str:
    # A method of `Function` stands for the user's function, which that object is named after.
    owner = getattr(function, "__self__", None)
    return str(getattr(owner, "name", None) or getattr(function, "__name__", "a function"))


compile_notice: Final = CompileNotice()
