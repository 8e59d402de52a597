"""Pins the private JAX names that evenfeed uses: a JAX version that changes one fails here first."""

import inspect

import jax
import pytest
from jax._src import array, distributed, xla_bridge
from jaxlib import _jax

from evenfeed.cluster import jax_private
from evenfeed.core.errors import UnavailableError
from evenfeed.core.lazy_jax import backend

# JAX's compiled functions have no signatures except the first line of their docstrings.
TAKES = {
    "get_distributed_runtime_service": ["heartbeat_timeout", "recoverable"],
    "get_distributed_runtime_client": [
        "address",
        "node_id",
        "init_timeout",
        "heartbeat_timeout",
        "shutdown_on_destruction",
        "use_compression",
    ],
    "make_gloo_tcp_collectives": ["distributed_client", "hostname"],
}


@pytest.mark.parametrize("name", TAKES)
def test_functions_take_what_they_are_given(name):
    signature = getattr(_jax, name).__doc__
    assert all(f"{argument}: " in signature for argument in TAKES[name]), signature


def test_a_member_of_the_service_can_do_what_is_asked_of_it():
    asked = {"connect", "key_value_set", "key_value_delete", "blocking_key_value_get"}
    assert asked <= set(dir(_jax.DistributedRuntimeClient))
    assert "shutdown" in dir(_jax.DistributedRuntimeService)


def test_texts_are_written_in_order_and_errors_are_told(monkeypatch):
    class Member:
        def __init__(self):
            self.said = []

        def key_value_set(self, key, text):
            if key == "bad":
                raise RuntimeError("ALREADY_EXISTS: bad")
            self.said.append((key, text))

        def key_value_delete(self, key):
            self.said.append((key, None))

    member = Member()
    monkeypatch.setattr(distributed.global_state, "client", member)
    jax_private.store_text("a", "1")
    jax_private.forget_text("a")
    with pytest.raises(UnavailableError, match="does not answer: ALREADY_EXISTS"):
        jax_private.store_text("bad", "2").wait(20)
    assert jax_private.store_text("b", "3").wait(20)
    assert member.said == [("a", "1"), ("a", None), ("b", "3")]


def test_this_process_is_known_to_be_alone():
    state = distributed.global_state
    names = {"client", "coordinator_address", "process_id", "num_processes"}
    assert names <= set(dir(state))
    assert jax_private.joined_runtime() is None


def test_the_cpu_backend_can_be_given_collectives():
    assert "collectives" in inspect.signature(xla_bridge.make_cpu_client).parameters
    register = inspect.signature(xla_bridge.register_backend_factory)
    register.bind("cpu", lambda: None, priority=0, fail_quietly=False)


def test_the_start_of_the_backend_is_told():
    jax.devices()
    assert jax_private.backend_started()
    assert backend.started_by is not None
    told = []
    xla_bridge.register_backend_initialization_hook(told.append)  # backends that have started
    xla_bridge._backend_initialization_hooks.remove(told.append)
    assert told


def test_all_ways_to_a_value_go_where_errors_are_explained(monkeypatch):
    """Failing results cannot be created in one process, so a failing wait stands in for them."""
    reads = []
    value = array.ArrayImpl._value.fget
    monkeypatch.setattr(
        array.ArrayImpl, "_value", property(lambda self: reads.append(1) or value(self))
    )
    # np.asarray gets here if the buffer that it requests first is an error (programs/training.py).
    ways = [float, int, bool, str, jax.device_get, lambda x: x.tolist(), lambda x: f"{x}"]
    for way in ways:
        reads.clear()
        way(jax.numpy.float32(3))
        assert reads, way


def test_errors_of_results_are_explained_and_others_are_not(monkeypatch):
    def fails(self):
        raise jax.errors.JaxRuntimeError(f"Gloo failed on {self.shape}")

    def is_wrong(self):
        raise TypeError(self.shape)

    asked = []

    def reraise(error):
        asked.append(str(error))
        raise ConnectionError("worker 1")

    monkeypatch.setattr(array.ArrayImpl, "_value", property(fails))
    monkeypatch.setattr(array.ArrayImpl, "block_until_ready", fails)
    jax_private.explain_errors(reraise)
    x = jax.numpy.float32(3)
    for wait in (float, jax.block_until_ready):
        with pytest.raises(ConnectionError, match="worker 1"):
            wait(x)
    monkeypatch.setattr(array.ArrayImpl, "_value", property(is_wrong))
    with pytest.raises(TypeError):
        x.tolist()
    assert asked == ["Gloo failed on ()"] * 2
