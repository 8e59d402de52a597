"""What is said of devices that are not there, and of choices that JAX cannot follow."""

from collections.abc import Sequence

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
    """Return the error for what is none of this machine's devices of these types."""
    names = ", ".join(one.name for one in known) or f"no {' or '.join(kinds)}"
    return ValueError(
        described(
            f"Unrecognized device: {device!r}. This machine has {names}.",
            fix="pass what evenfeed.config.list_physical_devices() returns.",
        )
    )


def unknown_type(device_type: object) -> ValueError:
    """Return the error for a type that no device has: nothing would be hidden."""
    return ValueError(
        described(
            f"device_type {device_type!r} is none of {', '.join(DEVICE_TYPES)}: nothing is hidden.",
            fix='write it in capitals, as in set_visible_devices([], "GPU").',
        )
    )


def not_configurations(logical_devices: object) -> TypeError:
    """Return the error for what is no list of configurations."""
    return TypeError(
        described(
            "logical_devices must be a list of LogicalDeviceConfiguration, "
            f"but got {logical_devices!r}.",
            fix="pass one configuration for each device: [LogicalDeviceConfiguration()] * 4.",
        )
    )


def cpu_takes_no_settings(configuration: object) -> ValueError:
    """Return the error for a logical CPU with a memory limit or the like."""
    return ValueError(
        described(
            f"A logical CPU device takes no settings, but got {configuration!r}.",
            fix="pass LogicalDeviceConfiguration() without arguments.",
        )
    )


def gpu_stays_whole(device: PhysicalDevice, asked: Sequence[object]) -> UnimplementedError:
    """Return the error for a GPU that is to be divided or limited."""
    return UnimplementedError(
        f"JAX uses a GPU whole: {device.name} cannot become {asked!r}.",
        fix="limit its memory with the environment variable XLA_PYTHON_CLIENT_MEM_FRACTION=0.5 "
        "before the program starts; try many replicas on logical CPU devices.",
    )


def tpu_stays_whole() -> ValueError:
    """Return the error for a TPU chip that is to be configured."""
    return ValueError(
        described(
            "Logical devices are not supported for TPU.", fix="use the TPU chips as they are."
        )
    )


def some_tpus(count: int) -> UnimplementedError:
    """Return the error for TPU chips of which some are to be hidden."""
    return UnimplementedError(
        f"JAX cannot be told to use only {count} of the TPU chips.",
        fix="set the environment variable TPU_VISIBLE_CHIPS before the program starts.",
    )


def too_late_to_hide() -> RuntimeError:
    """Return the error for devices that are to be hidden from a JAX that has started."""
    return RuntimeError(
        described(
            "Visible devices cannot be modified after JAX has started its backend.",
            fix="call set_visible_devices before anything computes with JAX; or start the program "
            "with JAX_PLATFORMS=cpu (no GPU) or CUDA_VISIBLE_DEVICES=0,1 (some).",
        )
    )


def too_late_to_divide(device_type: str, *, have: int, asked: int) -> RuntimeError:
    """Return the error for logical devices that a JAX that has started does not have."""
    return RuntimeError(
        described(
            "Logical devices cannot be modified after JAX has started its backend "
            f"(it has {have} {device_type} {'device' if have == 1 else 'devices'}).",
            fix="call set_logical_device_configuration before anything computes with JAX, "
            "jax.devices() included; or start the program with "
            f"JAX_NUM_CPU_DEVICES={asked} NPROC={4 * asked}.",
        )
    )


def no_cpu() -> NotFoundError:
    """Return the error for a program that hid the CPU, without which JAX cannot start."""
    return NotFoundError(
        "No CPU devices are available in this process: the program hid the CPU.",
        fix='hide one type only, as in set_visible_devices([], "GPU"), and give '
        "set_logical_device_configuration at least one configuration.",
    )


def other_task(name: DeviceName, have: Sequence[str]) -> InvalidArgumentError:
    """Return the error for a device of another process, or of a job that there is not."""
    return InvalidArgumentError(
        f"There is no device {name} in this process: it has {', '.join(have)}.",
        fix="use one of those. Each process names the devices of its own task only.",
    )


def missing_device(name: DeviceName, have: Sequence[str], asked: int) -> InvalidArgumentError:
    """Return the error for a device that this process does not have.

    Args:
        name: The device.
        have: The short names of those that there are.
        asked: How many devices the program asks for, this one included.
    """
    return InvalidArgumentError(
        f"There is no device {name.short} in this process: it has {', '.join(have)}.",
        fix=_how_to_have(name, have, asked),
    )


def _how_to_have(name: DeviceName, have: Sequence[str], asked: int) -> str:
    if name.device_type == "CPU":
        return (
            f"use one of those. CPU:0 to CPU:{name.index} are there "
            f"if this line comes before anything computes:\n{_logical_cpus(name.index + 1)}"
        )
    if any(one.startswith(f"{name.device_type}:") for one in have):
        return "use one of those."
    return _cpus_instead(name.device_type, max(2, asked))


def _cpus_instead(device_type: str, count: int) -> str:
    cpus = ", ".join(f'"CPU:{index}"' for index in range(count))
    return (
        f"this process has no {device_type}. Logical CPUs can stand in; before anything computes:\n"
        f"{_logical_cpus(count)}\n"
        f"       strategy = evenfeed.distribute.MirroredStrategy([{cpus}])"
    )


def _logical_cpus(count: int) -> str:
    return (
        "       evenfeed.config.set_logical_device_configuration("
        'evenfeed.config.list_physical_devices("CPU")[0], '
        f"[evenfeed.config.LogicalDeviceConfiguration()] * {count})"
    )
