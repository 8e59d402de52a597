"""Orbax stops waiting for workers that are lost. Also pins its private names, which evenfeed replaces."""

import asyncio
import inspect
import threading

import pytest
from orbax.checkpoint._src.futures import future, signaling_client
from orbax.checkpoint._src.metadata import array_metadata_store

from evenfeed.checkpoints import orbax_items, orbax_waits
from evenfeed.checkpoints.orbax_waits import WatchedSignals
from evenfeed.cluster.survival import guarded_waits
from evenfeed.core.concurrency.peers import Peers
from evenfeed.core.errors import UnavailableError

CALLS = {
    "key_value_set": ("key", "value"),
    "blocking_key_value_get": ("key", 600),
    "key_value_try_get": ("key",),
    "key_value_delete": ("key",),
    "key_value_dir_get": ("key/",),
    "wait_at_barrier": ("key",),
}


class Silent:
    """A client whose service does not answer before the test ends."""

    def __init__(self):
        self.ended = threading.Event()

    def __getattr__(self, name):
        return lambda *args, **settings: self.ended.wait(60)


@pytest.fixture
def peers(monkeypatch):
    made = Peers()
    made.expect(["worker 0", "worker 1"])
    monkeypatch.setattr(guarded_waits, "peers", made)
    return made


@pytest.mark.parametrize("name", CALLS)
def test_no_call_waits_for_a_service_that_is_gone(name, peers):
    client = Silent()
    settings = {"timeout_secs": 600} if name == "wait_at_barrier" else {}
    peers.hear(1, "is lost: its process exited unexpectedly.")
    try:
        with pytest.raises(UnavailableError, match="worker 1 is lost"):
            getattr(WatchedSignals(client), name)(*CALLS[name], **settings)
    finally:
        client.ended.set()


def test_every_call_of_orbax_is_watched():
    calls = inspect.getmembers(signaling_client.SignalingClient, inspect.isfunction)
    assert {name for name, _ in calls if not name.startswith("_")} == set(CALLS)
    assert all(hasattr(WatchedSignals, name) for name in CALLS)


@pytest.mark.usefixtures("peers")
def test_a_signal_is_awaited_in_slices_until_it_comes():
    waited = []

    class Slow:
        def blocking_key_value_get(self, key, timeout_secs):
            waited.append(timeout_secs)
            if len(waited) < 3:
                raise RuntimeError("DEADLINE_EXCEEDED: GetKeyValue() timed out")
            return f"value of {key}"

    assert WatchedSignals(Slow()).blocking_key_value_get("a", 600) == "value of a"
    assert waited == [1, 1, 1]


@pytest.mark.usefixtures("peers")
@pytest.mark.parametrize(
    ("text", "seconds"), [("DEADLINE_EXCEEDED: timed out", 0), ("INTERNAL: no", 600)]
)
def test_errors_and_the_end_of_patience_are_raised(text, seconds):
    class Failing:
        def blocking_key_value_get(self, key, timeout_secs):
            raise RuntimeError(text)

    with pytest.raises(RuntimeError, match=text):
        WatchedSignals(Failing()).blocking_key_value_get("a", seconds)


def test_orbax_uses_what_is_replaced():
    assert orbax_items.TextHandler  # importing it replaces them
    assert future.signaling_client is signaling_client  # looked up at each call
    assert signaling_client.get_signaling_client.__module__ == orbax_waits.__name__
    assert "self._maybe_create_base_dir(" in inspect.getsource(array_metadata_store.Store.write)


def test_a_single_process_keeps_the_client_of_orbax():
    client = signaling_client.get_signaling_client()
    assert isinstance(client, signaling_client.ThreadSafeKeyValueSignalingClient)


def test_any_worker_creates_the_folder_of_metadata(tmp_path):
    store = array_metadata_store.Store(primary_host=7)  # another process
    for _ in range(2):
        asyncio.run(store._maybe_create_base_dir(tmp_path / "array_metadatas"))
    assert (tmp_path / "array_metadatas").is_dir()
