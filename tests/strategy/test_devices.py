"""tf.config's devices: TensorFlow's answers, and the text of each error."""

import os
import subprocess
import sys
from types import SimpleNamespace

import jax
import pytest
from tests.saying import error_saying

from evenfeed import config
from evenfeed.cluster.hardware import Accelerators
from evenfeed.core.errors import InvalidArgumentError
from evenfeed.strategy import devices
from evenfeed.strategy.device_errors import missing_device
from evenfeed.strategy.device_names import DeviceName
from evenfeed.strategy.devices import default_devices, device_string, jax_device

ABOUT_DEVICES = ("NPROC", "XLA_FLAGS", "JAX_NUM_CPU_DEVICES", "JAX_PLATFORMS")

CPU = config.PhysicalDevice("/physical_device:CPU:0", "CPU")
GPU = config.PhysicalDevice("/physical_device:GPU:0", "GPU")
ONE = config.LogicalDeviceConfiguration()


def fresh(program, **environ):
    """Run a program in a new interpreter, without device settings other than `environ`."""
    env = {k: v for k, v in os.environ.items() if k not in ABOUT_DEVICES} | environ
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PREAMBLE + program],
        env=env,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr


PREAMBLE = """
import os, sys
from evenfeed import config
from evenfeed.strategy import devices
from evenfeed.cluster.hardware import Accelerators
from evenfeed.cluster.jax_private import backend_started

cpu, one = config.list_physical_devices("CPU")[0], config.LogicalDeviceConfiguration()

def refused(kind, *words, call):
    try:
        call()
    except Exception as error:
        assert type(error).__name__ == kind, repr(error)
        assert all(word in str(error) for word in (*words, "at:", "fix:")), str(error)
    else:
        raise AssertionError("was not refused")
"""


def test_devices_show_themselves_as_tensorflows_do():
    assert repr(CPU) == "PhysicalDevice(name='/physical_device:CPU:0', device_type='CPU')"
    assert (
        repr(config.LogicalDevice("/device:CPU:0", "CPU"))
        == "LogicalDevice(name='/device:CPU:0', device_type='CPU')"
    )
    assert repr(config.LogicalDeviceConfiguration(1024)) == (
        "LogicalDeviceConfiguration(memory_limit=1024, experimental_priority=None, "
        "experimental_device_ordinal=None)"
    )


def test_devices_are_equal_by_value_and_cannot_change():
    assert config.list_physical_devices("CPU")[0] == CPU
    assert hash(config.list_physical_devices("CPU")[0]) == hash(CPU)
    with pytest.raises(AttributeError):
        CPU.name = "other"
    with pytest.raises(AttributeError):
        ONE.memory_limit = 1


@pytest.mark.parametrize("device_type", ["cpu", "gpu", "XPU", "", 3])
def test_an_unknown_device_type_lists_nothing(device_type):
    assert config.list_physical_devices(device_type) == []
    assert config.get_visible_devices(device_type) == []
    assert config.list_logical_devices(device_type) == []


def test_logical_cpus_are_jax_devices():
    count = len(jax.local_devices(backend="cpu"))
    assert config.list_logical_devices("CPU") == [
        config.LogicalDevice(f"/device:CPU:{i}", "CPU") for i in range(count)
    ]


@pytest.mark.parametrize("device", [None, "CPU:0", GPU, 3, ("/physical_device:CPU:0", "CPU")])
def test_a_device_of_no_machine_is_refused(device):
    for call in (
        lambda: config.get_logical_device_configuration(device),
        lambda: config.set_logical_device_configuration(device, [ONE]),
    ):
        with pytest.raises(ValueError, match=r"Unrecognized device: .*has /physical_device:CPU:0"):
            call()


@pytest.mark.parametrize(
    ("devices", "device_type"),
    [
        (None, None),
        ("CPU:0", None),
        (["CPU:0"], None),
        ([CPU, "x"], None),
        ([CPU], "GPU"),
        (3, "CPU"),
    ],
)
def test_visible_devices_must_be_of_this_machine_and_type(devices, device_type):
    with pytest.raises(ValueError, match="Unrecognized device"):
        config.set_visible_devices(devices, device_type)


def test_hiding_a_misspelt_type_is_refused():
    with pytest.raises(ValueError, match="device_type must be one of CPU, GPU, TPU, but got 'gpu'"):
        config.set_visible_devices([], "gpu")


@pytest.mark.parametrize("setting", ["memory_limit", "experimental_priority"])
def test_a_logical_cpu_takes_no_settings(setting):
    with pytest.raises(ValueError, match="takes no settings") as refused:
        config.set_logical_device_configuration(
            CPU, [config.LogicalDeviceConfiguration(**{setting: 1})]
        )
    assert type(refused.value) is ValueError


@pytest.mark.parametrize("logical_devices", [None, 4, [3], ONE, [ONE, None]])
def test_logical_devices_must_be_configurations(logical_devices):
    with pytest.raises(TypeError, match="must be a list of LogicalDeviceConfiguration"):
        config.set_logical_device_configuration(CPU, logical_devices)


def test_after_the_start_only_what_is_so_already_can_be_set():
    jax.devices()
    asked = config.get_logical_device_configuration(CPU)
    if asked is not None:
        config.set_logical_device_configuration(CPU, asked)
    config.set_visible_devices([CPU], "CPU")
    with pytest.raises(RuntimeError, match=r"JAX_NUM_CPU_DEVICES=3 NPROC=9") as refused:
        config.set_logical_device_configuration(CPU, [ONE] * 3)
    assert type(refused.value) is RuntimeError
    with pytest.raises(RuntimeError, match="Visible devices cannot be modified") as refused:
        config.set_visible_devices([], "CPU")
    assert type(refused.value) is RuntimeError


def test_a_name_finds_its_jax_device():
    devices = jax.local_devices(backend="cpu")
    assert [jax_device(device_string(device)) for device in devices] == devices
    assert jax_device("cpu") is devices[0]
    assert device_string(devices[0]) == "/job:localhost/replica:0/task:0/device:CPU:0"
    assert device_string(devices[0], job="worker", task=3).startswith(
        "/job:worker/replica:0/task:3/"
    )


def test_a_worker_finds_the_devices_of_its_own_task():
    assert jax_device("/job:worker/replica:0/task:0/device:CPU:0") is jax_device("CPU:0")
    with pytest.raises(InvalidArgumentError, match="can only use the devices of its own task"):
        jax_device("/job:worker/replica:0/task:1/device:CPU:0")


@pytest.mark.parametrize("job", ["localhost", "worker", "chief"])
def test_the_jobs_that_hold_replicas_are_here(job):
    assert jax_device(f"/job:{job}/task:0/cpu:1") is jax_device("CPU:1")


@pytest.mark.parametrize("name", ["/job:foo/task:0/cpu:0", "/job:ps/cpu:0", "/replica:1/cpu:0"])
def test_a_device_of_another_job_or_replica_is_refused(name):
    with error_saying(
        InvalidArgumentError,
        f"There is no device {DeviceName.parse(name)} in this process: it has CPU:0, …",
        fix="use one of those. A process can only use the devices of its own task.",
    ):
        jax_device(name)


def test_a_missing_cpu_is_refused_with_the_line_to_type():
    with pytest.raises(InvalidArgumentError, match=r"no device CPU:99 .*: it has CPU:0") as refused:
        jax_device("CPU:99")
    assert "To get CPU:0 to CPU:99, add this line before" in str(refused.value)
    line = str(refused.value).splitlines()[-1].strip()
    assert line.endswith("[evenfeed.config.LogicalDeviceConfiguration()] * 100)")
    compile(line, "the line to type", "eval")


@pytest.mark.parametrize("name", ["GPU:0", "TPU:3"])
@pytest.mark.parametrize(("asked", "proposed"), [(1, 2), (4, 4)])
def test_a_missing_kind_is_refused_with_the_lines_for_cpus(name, asked, proposed):
    with pytest.raises(InvalidArgumentError, match=f"this process has no {name[:3]}") as refused:
        jax_device(name, asked)
    lines = [line.strip() for line in str(refused.value).splitlines()[-2:]]
    assert lines[0].endswith(f"[evenfeed.config.LogicalDeviceConfiguration()] * {proposed})")
    cpus = [f"CPU:{index}" for index in range(proposed)]
    assert lines[1] == f"strategy = evenfeed.distribute.MirroredStrategy({cpus})".replace("'", '"')
    compile("\n".join(lines), "the lines to type", "exec")


def test_a_missing_gpu_beside_others_is_refused_with_those():
    error = missing_device(DeviceName.parse("GPU:5"), ["CPU:0", "GPU:0", "GPU:1"], asked=1)
    assert error.message == (
        "There is no device GPU:5 in this process: it has CPU:0, GPU:0, GPU:1."
    )
    assert error.fix == "use one of those."


def test_a_strategy_without_devices_gets_every_cpu_where_there_is_no_gpu():
    assert default_devices() == tuple(map(device_string, jax.local_devices()))


@pytest.mark.parametrize("platform", ["cuda", "rocm"])
@pytest.mark.parametrize(("shown", "seen"), [([0, 2], "0,2"), ([1], "1"), ([0, 1, 2], "all")])
def test_jax_is_told_which_gpus_to_use(monkeypatch, platform, shown, seen):
    told = {}
    found = Accelerators(gpus=3, gpu_platform=platform)
    fake = SimpleNamespace(config=SimpleNamespace(update=told.__setitem__))
    monkeypatch.setattr(devices, "jax", fake)
    monkeypatch.setattr(devices, "_chosen", devices._Choices(logical={}, visible={}, machine=found))
    monkeypatch.setattr(devices, "backend_started", lambda: False)
    gpus = config.list_physical_devices("GPU")
    config.set_visible_devices([gpus[index] for index in shown], "GPU")
    assert told == {"jax_platforms": None, f"jax_{platform}_visible_devices": seen}


@pytest.mark.slow
def test_choosing_does_not_start_jax_and_listing_logical_devices_does():
    fresh("""
assert "jax" not in sys.modules
assert config.get_logical_device_configuration(cpu) is None
assert "jax" not in sys.modules
config.set_logical_device_configuration(cpu, (one, one, one))
config.set_logical_device_configuration(cpu, [one, one])
config.set_visible_devices(cpu, "CPU")
assert config.get_logical_device_configuration(cpu) == [one, one]
assert not backend_started()
assert len(config.list_logical_devices("CPU")) == 2
assert backend_started()
config.set_logical_device_configuration(cpu, [one, one])
""")


@pytest.mark.slow
def test_the_programs_own_jax_code_ends_the_choosing():
    fresh("""
import jax
jax.devices()
refused("RuntimeError", "(it has 1 CPU device)", "jax.devices() included",
        call=lambda: config.set_logical_device_configuration(cpu, [one, one]))
""")


@pytest.mark.slow
def test_without_a_cpu_nothing_runs():
    fresh("""
config.set_visible_devices([])
assert config.get_visible_devices() == [] and config.list_physical_devices() == [cpu]
refused("NotFoundError", "No CPU devices are available", call=config.list_logical_devices)
config.set_visible_devices(cpu)
config.set_logical_device_configuration(cpu, [])
assert config.get_logical_device_configuration(cpu) == []
refused("NotFoundError", "No CPU devices are available", call=config.list_logical_devices)
assert not backend_started()
""")


WITH_GPUS = """
devices.accelerators_found = lambda platforms: Accelerators(gpus=3, gpu_platform="{platform}")
gpus = config.list_physical_devices("GPU")
assert [gpu.name for gpu in gpus] == [f"/physical_device:GPU:{{i}}" for i in range(3)]
assert "jax" not in sys.modules
import jax
"""


@pytest.mark.slow
@pytest.mark.parametrize("platform", ["cuda", "rocm"])
def test_gpus_are_hidden_from_jax(platform):
    fresh(
        WITH_GPUS.format(platform=platform)
        + f"""
def seen():
    return jax.config._read("jax_{platform}_visible_devices")

config.set_visible_devices([gpus[0], gpus[2]], "GPU")
assert (seen(), jax.config.jax_platforms) == ("0,2", None)
assert config.get_visible_devices() == [cpu, gpus[0], gpus[2]]
config.set_visible_devices(gpus, "GPU")
assert (seen(), jax.config.jax_platforms) == ("all", None)
config.set_visible_devices([], "GPU")
assert jax.config.jax_platforms == "cpu"
assert config.list_physical_devices("GPU") == gpus and config.get_visible_devices() == [cpu]
assert [device.device_type for device in config.list_logical_devices()] == ["CPU"]
config.set_visible_devices([], "GPU")
assert config.list_physical_devices("GPU") == gpus
refused("RuntimeError", "JAX_PLATFORMS=cpu", call=lambda: config.set_visible_devices(gpus, "GPU"))
"""
    )


@pytest.mark.slow
def test_a_gpu_stays_whole():
    fresh(
        WITH_GPUS.format(platform="cuda")
        + """
config.set_logical_device_configuration(gpus[0], [one])
assert config.get_logical_device_configuration(gpus[0]) == [one]
for asked in ([one, one], [config.LogicalDeviceConfiguration(memory_limit=1024)], []):
    refused("UnimplementedError", "XLA_PYTHON_CLIENT_MEM_FRACTION",
            call=lambda: config.set_logical_device_configuration(gpus[0], asked))
"""
    )


@pytest.mark.slow
def test_tpu_chips_are_hidden_all_or_none():
    fresh("""
devices.accelerators_found = lambda platforms: Accelerators(tpus=4)
import jax
tpus = config.list_physical_devices("TPU")
refused("ValueError", "not supported for TPU",
        call=lambda: config.set_logical_device_configuration(tpus[0], [one]))
refused("UnimplementedError", "TPU_VISIBLE_CHIPS",
        call=lambda: config.set_visible_devices(tpus[:2], "TPU"))
config.set_visible_devices([], "GPU")
assert jax.config.jax_platforms == "tpu,cpu"
config.set_visible_devices([], "TPU")
assert jax.config.jax_platforms == "cpu"
""")


@pytest.mark.slow
def test_gpus_that_were_not_found_are_hidden_all_the_same():
    fresh("""
import jax
config.set_visible_devices([cpu], "CPU")
assert jax.config.jax_platforms is None
config.set_visible_devices([], "GPU")
assert jax.config.jax_platforms == "cpu"
""")
