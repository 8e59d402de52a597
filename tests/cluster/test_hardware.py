"""Accelerators, detected from real device files and packages in a temporary folder."""

import sys

import pytest

from evenfeed.cluster.hardware import (
    Accelerators,
    Machine,
    accelerators_found,
    platforms_asked_for,
    platforms_without,
)


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """Create a machine from files: device files below dev/, and packages that Python can import."""

    def make(files=(), packages=(), **environ):
        for name in files:
            path = tmp_path / "root" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
        for name in packages:
            (tmp_path / "packages" / name).mkdir(parents=True)
            (tmp_path / "packages" / name / "__init__.py").touch()
        monkeypatch.syspath_prepend(tmp_path / "packages")
        return Machine(tmp_path / "root", environ)

    return make


NVIDIA = ["dev/nvidia0", "dev/nvidia1", "dev/nvidia2", "dev/nvidiactl", "dev/nvidia-uvm"]
AMD = ["dev/kfd", "dev/dri/renderD128", "dev/dri/renderD129", "dev/dri/card0"]


def test_nothing_is_found_on_a_bare_machine(machine):
    assert accelerators_found(None, machine()) == Accelerators()


@pytest.mark.parametrize("plugin", ["jax_cuda12_plugin", "jax_cuda13_plugin"])
def test_nvidia_gpus_are_counted_by_their_files(machine, plugin):
    found = accelerators_found(None, machine(NVIDIA, [plugin]))
    assert found == Accelerators(gpus=3, gpu_platform="cuda")


def test_gpus_that_jax_has_no_plugin_for_do_not_count(machine):
    assert accelerators_found(None, machine(NVIDIA + AMD)) == Accelerators()


def test_a_plugin_without_a_device_file_does_not_count(machine):
    assert accelerators_found(None, machine(["dev/nvidiactl"], ["jax_cuda12_plugin"])).gpus == 0


@pytest.mark.parametrize(
    ("chosen", "count"),
    [("0,2", 2), ("", 0), ("-1", 0), ("1,-1,2", 1), ("7", 0), ("GPU-8932f937", 1), (" 0, 1", 2)],
)
def test_cuda_visible_devices_is_honoured(machine, chosen, count):
    here = machine(NVIDIA, ["jax_cuda12_plugin"], CUDA_VISIBLE_DEVICES=chosen)
    assert accelerators_found(None, here).gpus == count


def test_amd_gpus_need_the_compute_driver(machine):
    assert accelerators_found(None, machine(AMD[1:], ["jax_rocm7_plugin"])).gpus == 0


def test_amd_gpus_are_counted_by_their_render_files(machine):
    found = accelerators_found(None, machine(AMD, ["jax_rocm7_plugin"]))
    assert found == Accelerators(gpus=2, gpu_platform="rocm")


def test_rocr_visible_devices_is_honoured(machine):
    here = machine(AMD, ["jax_rocm60_plugin"], ROCR_VISIBLE_DEVICES="1")
    assert accelerators_found(None, here).gpus == 1


@pytest.mark.parametrize("folder", ["dev/accel", "dev/vfio/"])
def test_tpu_chips_are_counted_by_their_files(machine, folder):
    here = machine([f"{folder}{chip}" for chip in range(4)], ["libtpu"])
    assert accelerators_found(None, here) == Accelerators(tpus=4)


@pytest.mark.parametrize(
    ("platforms", "gpus", "tpus"),
    [
        (None, 3, 1),
        ("", 3, 1),
        ("cpu", 0, 0),
        ("cuda,cpu", 3, 0),
        ("gpu", 3, 0),
        ("tpu,cpu", 0, 1),
        ("rocm", 0, 0),
    ],
)
def test_jax_platforms_may_leave_some_out(machine, platforms, gpus, tpus):
    here = machine([*NVIDIA, "dev/accel0"], ["jax_cuda12_plugin", "libtpu"])
    found = accelerators_found(platforms, here)
    assert (found.gpus, found.tpus) == (gpus, tpus)


@pytest.mark.parametrize(
    ("hidden", "asked", "found", "platforms"),
    [
        (set(), None, Accelerators(gpus=1, gpu_platform="cuda"), None),
        (set(), "cuda,cpu", Accelerators(), "cuda,cpu"),
        ({"GPU"}, None, Accelerators(), "cpu"),
        ({"GPU"}, "cuda", Accelerators(), "cpu"),
        ({"GPU"}, "gpu,cpu", Accelerators(), "cpu"),
        ({"TPU"}, None, Accelerators(gpus=1, tpus=4, gpu_platform="rocm"), "rocm,cpu"),
        ({"GPU", "TPU"}, "tpu,cuda,cpu", Accelerators(), "cpu"),
    ],
)
def test_hidden_types_are_left_out_of_the_platforms(hidden, asked, found, platforms):
    assert platforms_without(hidden, asked, found) == platforms


def test_jax_platforms_is_read_from_the_environment_while_jax_is_not_loaded(monkeypatch):
    monkeypatch.delitem(sys.modules, "jax", raising=False)
    assert platforms_asked_for({"JAX_PLATFORMS": "tpu"}) == "tpu"
    assert platforms_asked_for({}) is None
