"""`evenfeed doctor`: what it finds, and that it fails if something is wrong."""

import json
import socket
from typing import Any

import pytest

from evenfeed.command import doctor
from evenfeed.command.main import main
from evenfeed.strategy.xla_threads import Threads


@pytest.fixture(autouse=True)
def devices(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two devices, without a process that asks JAX; a slow test asks it."""
    monkeypatch.setattr(doctor, "_devices", lambda: ([["cpu", "cpu", 0], ["cpu", "cpu", 1]], []))
    monkeypatch.delenv("TF_CONFIG", raising=False)


def findings(capsys: pytest.CaptureFixture[str], code: int) -> list[dict[str, Any]]:
    assert main(["doctor", "--json"]) == code
    return json.loads(capsys.readouterr().out)["findings"]


def test_a_machine_without_a_cluster_is_well(capsys):
    assert main(["doctor"]) == 0
    said = capsys.readouterr().out
    assert "devices: 2 x cpu" in said
    assert "TF_CONFIG is not set" in said
    assert "numpy " in said


def cluster(*addresses: str) -> str:
    return json.dumps({"cluster": {"worker": addresses}, "task": {"type": "worker", "index": 0}})


def test_a_port_that_is_taken_is_wrong(monkeypatch, capsys):
    with socket.socket() as taken:
        taken.bind(("", 0))
        taken.listen()
        address = f"localhost:{taken.getsockname()[1]}"
        monkeypatch.setenv("TF_CONFIG", cluster(address))
        (wrong,) = [f for f in findings(capsys, 1) if f["wrong"]]
    assert f"cannot listen at {address}" in wrong["what"]
    assert "TF_CONFIG on all workers" in wrong["fix"]


def test_other_workers_are_tried(monkeypatch, capsys):
    with socket.socket() as other:
        other.bind(("localhost", 0))
        other.listen()
        address = f"localhost:{other.getsockname()[1]}"
        monkeypatch.setenv("TF_CONFIG", cluster("localhost:0", address, "no.such.host.invalid:1"))
        said = [f["what"] for f in findings(capsys, 1)]
    assert f"{address} answers." in said
    assert any(what.startswith("no.such.host.invalid:1 cannot be reached") for what in said)


def test_a_wrong_tf_config_is_wrong(monkeypatch, capsys):
    monkeypatch.setenv("TF_CONFIG", "{")
    (wrong,) = [f for f in findings(capsys, 1) if f["wrong"]]
    assert wrong["what"].startswith("TF_CONFIG is wrong: TF_CONFIG is not JSON")
    assert "\n" not in wrong["what"]
    assert wrong["fix"].startswith("export TF_CONFIG=")


@pytest.mark.parametrize("address", ["localhost", "localhost:", "localhost:x", "localhost:65536"])
def test_an_address_without_a_port_is_wrong(address, monkeypatch, capsys):
    for addresses in ([address], ["localhost:0", address]):
        monkeypatch.setenv("TF_CONFIG", cluster(*addresses))
        (wrong,) = [f for f in findings(capsys, 1) if f["wrong"]]
        assert wrong["what"] == f"{address} is not the address of a worker."
        assert "host:port" in wrong["fix"]


def test_too_few_threads_are_a_note(monkeypatch, capsys):
    monkeypatch.setattr(doctor, "threads", lambda: Threads(8, 2, 32))
    (note,) = [f for f in findings(capsys, 0) if f["fix"]]
    assert note["fix"] == "export NPROC=32"


@pytest.mark.slow
def test_jax_is_asked_in_a_process_of_its_own(monkeypatch, capsys):
    monkeypatch.undo()
    monkeypatch.setenv("JAX_NUM_CPU_DEVICES", "3")
    assert main(["doctor", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["devices"]) == 3
    monkeypatch.setenv("JAX_PLATFORMS", "nonsense")
    assert main(["doctor", "--json"]) == 1
    assert "JAX does not start" in capsys.readouterr().out
