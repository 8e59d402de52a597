"""Ends what Orbax waits for when a worker is lost.

The workers signal each other through the store of JAX's coordination service while Orbax saves. A lost worker never sends
its signal, and a service that is gone never answers. Orbax would wait for minutes, some calls forever, in threads that
Python waits for at exit.
"""

import time
from collections.abc import Callable, Sequence
from functools import lru_cache
from importlib import import_module
from typing import Any, Final, final

from evenfeed.cluster.survival.guarded_waits import guarded
from evenfeed.core.concurrency.peers import MEETING_ERRORS

_SLICE_SECONDS: Final = 1  # Orbax takes whole seconds


@final
class WatchedSignals:
    """Orbax's client of the store. Every call raises UnavailableError when a worker is lost.

    Args:
        client: Orbax's own client.
    """

    def __init__(self, client: Any) -> None:
        self._client = client

    def key_value_set(self, key: str, value: str, allow_overwrite: bool = False) -> None:
        guarded(lambda: self._client.key_value_set(key, value, allow_overwrite=allow_overwrite))

    def blocking_key_value_get(self, key: str, timeout_secs: int) -> str:
        """Wait for a value in slices: a call that is left behind then ends before the program does."""
        end = time.monotonic() + timeout_secs
        while True:
            try:
                return guarded(lambda: self._client.blocking_key_value_get(key, _SLICE_SECONDS))
            except MEETING_ERRORS as error:
                if "DEADLINE_EXCEEDED" not in str(error) or time.monotonic() > end:
                    raise

    def key_value_try_get(self, key: str) -> str | None:
        return guarded(lambda: self._client.key_value_try_get(key))

    def key_value_delete(self, key: str) -> None:
        guarded(lambda: self._client.key_value_delete(key))

    def key_value_dir_get(self, key: str) -> Sequence[tuple[str, str]]:
        return guarded(lambda: self._client.key_value_dir_get(key))

    def wait_at_barrier(
        self, key: str, *, timeout_secs: int, process_ids: Sequence[int] | None = None
    ) -> None:
        guarded(
            lambda: self._client.wait_at_barrier(
                key, timeout_secs=timeout_secs, process_ids=process_ids
            )
        )


def end_waits_at_losses() -> None:
    """Make Orbax's waits for other workers end when one is lost. Calling it again does nothing.

    What is left are its barriers. They take a function of ours (`storage.py`), or are collectives, which fail.
    """
    signals: Any = import_module("orbax.checkpoint._src.futures.signaling_client")
    metadata: Any = import_module("orbax.checkpoint._src.metadata.array_metadata_store")
    if metadata.Store._maybe_create_base_dir is not _create_folder:
        metadata.Store._maybe_create_base_dir = _create_folder
        signals.get_signaling_client = _watching(signals)


async def _create_folder(store: Any, folder: Any) -> None:
    """Create the folder of a checkpoint's metadata on any worker. Orbax would wait for worker 0 to do it."""
    del store
    folder.mkdir(exist_ok=True)


def _watching(signals: Any) -> Callable[[], Any]:
    original = signals.get_signaling_client

    @lru_cache  # Orbax clears the cache of its function
    def get_signaling_client() -> Any:
        client = original()
        is_shared = isinstance(client, signals.JaxDistributedSignalingClient)
        return WatchedSignals(client) if is_shared else client

    return get_signaling_client
