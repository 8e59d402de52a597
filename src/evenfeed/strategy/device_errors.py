"""Errors about devices that do not exist, and about device settings that JAX does not support."""

from collections.abc import Sequence

from evenfeed.cluster.jax_private import THREADS_PER_DEVICE
from evenfeed.core.errors import (
    InvalidArgumentError,
    NotFoundError,
    UnimplementedError,
    described,
)
from evenfeed.strategy.device_names import DEVICE_TYPES, DeviceName, PhysicalDevice


def unknown_device(
    device: object, known: Sequence[PhysicalDevice], kinds: Sequence[str]
) -> ValueError:
    """Return the error for a device that this machine does not have."""
    names = ", ".join(one.name for one in known) or f"no {' or '.join(kinds)}"
    return ValueError(
        described(
            f"Unrecognized device: {device!r}. This machine has {names}.",
            fix="pass devices from evenfeed.config.list_physical_devices().",
        )
    )


def unknown_type(device_type: object) -> ValueError:
    """Return the error for an unknown device type, which would hide nothing."""
    return ValueError(
        described(
            f"device_type must be one of {', '.join(DEVICE_TYPES)}, but got {device_type!r}.",
            fix='write it in capitals, as in set_visible_devices([], "GPU").',
        )
    )


def not_configurations(logical_devices: object) -> TypeError:
    """Return the error for an argument that is not a list of configurations."""
    return TypeError(
        described(
            "logical_devices must be a list of LogicalDeviceConfiguration, "
            f"but got {logical_devices!r}.",
            fix="pass one configuration for each device: [LogicalDeviceConfiguration()] * 4.",
        )
    )


def cpu_takes_no_settings(configuration: object) -> ValueError:
    """Return the error for a logical CPU with a memory limit or another setting."""
    return ValueError(
        described(
            f"A logical CPU device takes no settings, but got {configuration!r}.",
            fix="pass LogicalDeviceConfiguration() without arguments.",
        )
    )


def gpu_stays_whole(device: PhysicalDevice, asked: Sequence[object]) -> UnimplementedError:
    """Return the error for splitting a GPU or limiting its memory."""
    return UnimplementedError(
        f"JAX cannot split a GPU: {device.name} cannot become {asked!r}.",
        fix="to limit its memory, set the environment variable XLA_PYTHON_CLIENT_MEM_FRACTION=0.5 "
        "before the program starts; to try several replicas, use logical CPU devices.",
    )


def tpu_stays_whole() -> ValueError:
    """Return the error for a logical configuration of a TPU chip."""
    return ValueError(
        described(
            "Logical devices are not supported for TPU.", fix="use the TPU chips as they are."
        )
    )


def some_tpus(count: int) -> UnimplementedError:
    """Return the error for hiding only some of the TPU chips."""
    return UnimplementedError(
        f"JAX has no setting to use only {count} of the TPU chips.",
        fix="set the environment variable TPU_VISIBLE_CHIPS before the program starts.",
    )


def too_late_to_hide() -> RuntimeError:
    """Return the error for hiding devices after JAX has started."""
    return RuntimeError(
        described(
            "Visible devices cannot be modified after JAX has started its backend.",
            fix="call set_visible_devices before anything computes with JAX; or start the program "
            "with JAX_PLATFORMS=cpu (no GPU) or CUDA_VISIBLE_DEVICES=0,1 (some).",
        )
    )


def too_late_to_divide(device_type: str, *, have: int, asked: int) -> RuntimeError:
    """Return the error for asking for other logical devices after JAX has started."""
    return RuntimeError(
        described(
            "Logical devices cannot be modified after JAX has started its backend "
            f"(it has {have} {device_type} {'device' if have == 1 else 'devices'}).",
            fix="call set_logical_device_configuration before anything computes with JAX, "
            "jax.devices() included; or start the program with "
            f"JAX_NUM_CPU_DEVICES={asked} NPROC={THREADS_PER_DEVICE * asked}.",
        )
    )


def no_cpu() -> NotFoundError:
    """Return the error for a program that hid the CPU. JAX cannot start without it."""
    return NotFoundError(
        "No CPU devices are available in this process: the program hid the CPU.",
        fix='hide one type only, as in set_visible_devices([], "GPU"), and give '
        "set_logical_device_configuration at least one configuration.",
    )


def other_task(name: DeviceName, have: Sequence[str]) -> InvalidArgumentError:
    """Return the error for a device of another process or of an unknown job."""
    return InvalidArgumentError(
        f"There is no device {name} in this process: it has {', '.join(have)}.",
        fix="use one of those. A process can only use the devices of its own task.",
    )


def missing_device(name: DeviceName, have: Sequence[str], asked: int) -> InvalidArgumentError:
    """Return the error for a device that this process does not have.

    Args:
        name: The device.
        have: The short names of the devices that exist.
        asked: The number of devices that the program asks for, including this one.
    """
    return InvalidArgumentError(
        f"There is no device {name.short} in this process: it has {', '.join(have)}.",
        fix=_missing_device_fix(name, have, asked),
    )


def _missing_device_fix(name: DeviceName, have: Sequence[str], asked: int) -> str:
    if name.device_type == "CPU":
        return (
            f"use one of those. To get CPU:0 to CPU:{name.index}, "
            f"add this line before anything computes:\n{_logical_cpus(name.index + 1)}"
        )
    if any(one.startswith(f"{name.device_type}:") for one in have):
        return "use one of those."
    return _cpus_instead(name.device_type, max(2, asked))


def _cpus_instead(device_type: str, count: int) -> str:
    cpus = ", ".join(f'"CPU:{index}"' for index in range(count))
    return (
        f"this process has no {device_type}. To use logical CPUs instead, "
        "add these lines before anything computes:\n"
        f"{_logical_cpus(count)}\n"
        f"       strategy = evenfeed.distribute.MirroredStrategy([{cpus}])"
    )


def _logical_cpus(count: int) -> str:
    return (
        "       evenfeed.config.set_logical_device_configuration("
        'evenfeed.config.list_physical_devices("CPU")[0], '
        f"[evenfeed.config.LogicalDeviceConfiguration()] * {count})"
    )
