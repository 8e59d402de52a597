"""A strategy that finds only the CPU says how to get several replicas, once."""

import subprocess
import sys

import pytest

from evenfeed.strategy.devices import get_logical_device_configuration
from evenfeed.strategy.lone_cpu import LoneCpuNotice

CPU = "/job:localhost/replica:0/task:0/device:CPU:0"
GPU = "/job:localhost/replica:0/task:0/device:GPU:0"


@pytest.fixture
def unconfigured(monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"evenfeed.strategy.lone_cpu.{get_logical_device_configuration.__name__}"
    monkeypatch.setattr(name, nothing)


def nothing(_: object) -> None:
    return None


@pytest.mark.usefixtures("unconfigured")
@pytest.mark.parametrize(
    ("names", "lines"), [([CPU], 1), ([CPU, CPU], 0), ([GPU], 0)], ids=["CPU", "two CPUs", "GPU"]
)
def test_only_a_lone_cpu_is_announced(
    caplog: pytest.LogCaptureFixture, names: list[str], lines: int
) -> None:
    notice = LoneCpuNotice()
    notice(names)
    notice(names)
    assert len(caplog.messages) == lines
    assert all("tf.config.set_logical_device_configuration(cpu, [" in m for m in caplog.messages)


def test_a_program_that_asked_for_its_devices_is_not_told(caplog: pytest.LogCaptureFixture) -> None:
    LoneCpuNotice()([CPU])  # tests/conftest.py asked for eight
    assert not caplog.messages


@pytest.mark.slow
def test_what_the_notice_says_to_type_works() -> None:
    program = (
        "import evenfeed as tf; {}print(tf.distribute.MirroredStrategy().num_replicas_in_sync)"
    )
    alone = run(program.format(""))
    assert alone.stdout == "1\n"
    said = alone.stderr.partition("write this first: ")[2].partition(". If there")[0]
    several = run(program.format(f"{said}; "))
    assert (several.stdout, several.stderr) == ("4\n", "")


def run(program: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=100, check=True
    )
