"""Physical and logical devices for `tf.config`, and the JAX devices behind them.

Devices must be configured before JAX's backend starts. Listing physical devices and configuring them
therefore never starts the backend; anything that needs a real device does.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, cast

from evenfeed.cluster.hardware import (
    Accelerators,
    Device,
    accelerators_found,
    accelerators_started,
    platforms_asked_for,
    platforms_without,
    started_devices,
)
from evenfeed.cluster.jax_private import backend_started
from evenfeed.core.lazy_jax import jax
from evenfeed.strategy import device_errors
from evenfeed.strategy.device_names import (
    DEVICE_TYPES,
    DeviceName,
    LogicalDevice,
    PhysicalDevice,
)
from evenfeed.strategy.xla_threads import arrange_threads

# The job names that TensorFlow uses for a process with replicas, alone or in a cluster.
_JOBS: Final = ("localhost", "worker", "chief")


class LogicalDeviceConfiguration(NamedTuple):
    """The configuration of one logical device on a physical device.

    JAX cannot limit a device's memory or set its priority, so all three settings must stay None. They
    exist for compatibility with TensorFlow.
    """

    memory_limit: float | None = None
    experimental_priority: int | None = None
    experimental_device_ordinal: int | None = None


@dataclass
class _Choices:
    """The program's choices before JAX started. JAX's own settings do not keep all of them."""

    logical: dict[PhysicalDevice, list[LogicalDeviceConfiguration]]
    visible: dict[str, list[PhysicalDevice]]
    # The accelerators before any were hidden. JAX does not see hidden devices.
    machine: Accelerators | None = None
    platforms: str | None = None


_chosen = _Choices(logical={}, visible={})


def list_physical_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """List the devices of this machine, including hidden ones, without loading JAX.

    Args:
        device_type: "CPU", "GPU" or "TPU", in capitals. By default, all types are listed.

    Examples:
        >>> import evenfeed as tf
        >>> tf.config.list_physical_devices("CPU")
        [PhysicalDevice(name='/physical_device:CPU:0', device_type='CPU')]
    """
    found = _machine()
    counts = {"CPU": 1, "GPU": found.gpus, "TPU": found.tpus}
    return [
        PhysicalDevice(f"/physical_device:{kind}:{index}", kind)
        for kind, count in counts.items()
        for index in range(count)
        if device_type in (None, kind)
    ]


def get_visible_devices(device_type: str | None = None) -> list[PhysicalDevice]:
    """List the physical devices that JAX may use.

    Args:
        device_type: "CPU", "GPU" or "TPU", in capitals. By default, all types are listed.

    Examples:
        >>> import evenfeed as tf
        >>> tf.config.get_visible_devices("CPU") == tf.config.list_physical_devices("CPU")
        True
    """
    return [
        device
        for kind in DEVICE_TYPES
        for device in _chosen.visible.get(kind, list_physical_devices(kind))
        if device_type in (None, kind)
    ]


def set_visible_devices(
    devices: PhysicalDevice | Sequence[PhysicalDevice], device_type: str | None = None
) -> None:
    """Choose the physical devices that JAX may use. Call this before anything computes.

    Args:
        devices: The devices to use, from `list_physical_devices`. `[]` hides all of them.
        device_type: The type to choose devices of; other types are unaffected. Without it, every device
            that is not in `devices` is hidden, including the CPU.

    Raises:
        ValueError: This machine has no such device, or the device has another type.
        RuntimeError: JAX has already started with other devices.

    Examples:
        >>> import evenfeed as tf
        >>> tf.config.set_visible_devices([], "GPU")
        >>> tf.config.get_visible_devices("GPU")
        []
    """
    kinds = _kinds(device_type)
    wanted = [devices] if isinstance(devices, PhysicalDevice) else _listed(devices)
    for device in wanted:
        _check_known(device, kinds)
    choice = {kind: [d for d in dict.fromkeys(wanted) if d.device_type == kind] for kind in kinds}
    if backend_started():
        _check_visible_already(choice)
        return
    _check_all_or_no_tpus(choice.get("TPU", []))
    _hide_others(choice)


def get_logical_device_configuration(
    device: PhysicalDevice,
) -> list[LogicalDeviceConfiguration] | None:
    """Return the configuration that `set_logical_device_configuration` set for a device, or None.

    Args:
        device: One of `list_physical_devices()`.
    """
    _check_known(device)
    asked = _chosen.logical.get(device)
    return None if asked is None else list(asked)


def set_logical_device_configuration(
    device: PhysicalDevice, logical_devices: Sequence[LogicalDeviceConfiguration]
) -> None:
    """Split the CPU into several logical devices. Call this before anything computes.

    This lets you try a program with several replicas on any machine. It also raises the environment
    variable NPROC, so that XLA has enough threads.

    Args:
        device: The CPU: `list_physical_devices("CPU")[0]`. A GPU cannot be split.
        logical_devices: One configuration for each logical device.

    Raises:
        ValueError: This machine has no such device, or a CPU configuration has a memory limit.
        RuntimeError: evenfeed or the program has already started JAX.
        UnimplementedError: The configuration splits a GPU or limits its memory.

    Examples:
        >>> import evenfeed as tf
        >>> cpu = tf.config.list_physical_devices("CPU")[0]
        >>> one = tf.config.LogicalDeviceConfiguration()
        >>> tf.config.set_logical_device_configuration(cpu, [one] * 8)
        >>> len(tf.config.list_logical_devices("CPU"))
        8
    """
    _check_known(device)
    asked = _configurations(logical_devices)
    _check_possible(device, asked)
    if _chosen.logical.get(device) == asked:
        return
    if backend_started():
        have = len(started_devices(device.device_type))
        raise device_errors.too_late_to_divide(device.device_type, have=have, asked=len(asked))
    _chosen.logical[device] = asked
    if device.device_type == "CPU" and asked:
        jax.config.update("jax_num_cpu_devices", len(asked))
        arrange_threads()


def list_logical_devices(device_type: str | None = None) -> list[LogicalDevice]:
    """List the devices that computations run on. This starts JAX's backend.

    Args:
        device_type: "CPU", "GPU" or "TPU", in capitals. By default, all types are listed.

    Examples:
        >>> import evenfeed as tf
        >>> tf.config.list_logical_devices("CPU")[0]
        LogicalDevice(name='/device:CPU:0', device_type='CPU')
    """
    return [
        LogicalDevice(f"/device:{kind}:{index}", kind)
        for kind in DEVICE_TYPES
        for index in range(len(_devices(kind)))
        if device_type in (None, kind)
    ]


def default_devices() -> tuple[str, ...]:
    """Return the names of a strategy's default devices: the GPUs or TPUs, or else the CPUs."""
    devices = _devices("GPU") or _devices("TPU") or _devices("CPU")
    return tuple(device_string(device) for device in devices)


def jax_device(name: str, asked: int = 1) -> Device:
    """Return the JAX device of this process with the given name.

    Args:
        name: The name, of any length.
        asked: The total number of devices that the program asks for. Used in the error text.

    Raises:
        ValueError: The string is not a device name.
        InvalidArgumentError: This process has no such device.
    """
    parsed = DeviceName.parse(name)
    devices = _devices(parsed.device_type)
    if not _is_here(parsed):
        raise device_errors.other_task(parsed, _short_names())
    if parsed.index >= len(devices):
        raise device_errors.missing_device(parsed, _short_names(), asked)
    return devices[parsed.index]


def device_string(device: Device, *, job: str = "localhost", task: int = 0) -> str:
    """Return the canonical name of a JAX device, with its index within its own process."""
    every: list[Device] = jax.local_devices(device.process_index, backend=device.platform)
    kind = device.platform.upper()
    return str(DeviceName(job=job, task=task, device_type=kind, index=every.index(device)))


def _machine() -> Accelerators:
    if _chosen.machine is not None:
        return _chosen.machine
    return (
        accelerators_started() if backend_started() else accelerators_found(platforms_asked_for())
    )


def _devices(device_type: str) -> list[Device]:
    """List JAX's devices of a type. Prepares the settings that JAX needs before it starts."""
    cpu = PhysicalDevice("/physical_device:CPU:0", "CPU")
    if cpu not in get_visible_devices() or _chosen.logical.get(cpu) == []:
        raise device_errors.no_cpu()
    arrange_threads()
    return started_devices(device_type)


def _short_names() -> list[str]:
    return [f"{kind}:{i}" for kind in DEVICE_TYPES for i in range(len(_devices(kind)))]


def _is_here(name: DeviceName) -> bool:
    task_here = name.job == "localhost" and name.task == 0
    own_task = name.job in _JOBS and name.task == jax.process_index()
    return name.replica == 0 and (task_here or own_task)


def _hide_others(choice: dict[str, list[PhysicalDevice]]) -> None:
    if _chosen.machine is None:
        _chosen.machine, _chosen.platforms = _machine(), platforms_asked_for()
    _chosen.visible |= choice
    hidden = {kind for kind in ("GPU", "TPU") if _chosen.visible.get(kind) == []}
    platforms = platforms_without(hidden, _chosen.platforms, _chosen.machine)
    jax.config.update("jax_platforms", platforms)
    if _chosen.machine.gpu_platform is not None:
        visible = _gpu_numbers(get_visible_devices("GPU"))
        jax.config.update(f"jax_{_chosen.machine.gpu_platform}_visible_devices", visible)


def _gpu_numbers(gpus: list[PhysicalDevice]) -> str:
    if not gpus or gpus == list_physical_devices("GPU"):
        return "all"  # jax_platforms hides all GPUs
    return ",".join(gpu.name.rpartition(":")[2] for gpu in gpus)


def _kinds(device_type: str | None) -> tuple[str, ...]:
    if device_type is None:
        return DEVICE_TYPES
    if device_type in DEVICE_TYPES:
        return (device_type,)
    raise device_errors.unknown_type(device_type)


def _listed(devices: object) -> list[PhysicalDevice]:
    # Anything but a list counts as a single device, so that the error names it.
    several = isinstance(devices, list | tuple)
    return list(cast("Iterable[PhysicalDevice]", devices if several else [devices]))


def _configurations(logical_devices: object) -> list[LogicalDeviceConfiguration]:
    if isinstance(logical_devices, list | tuple):
        asked = list(cast("Iterable[object]", logical_devices))
        ours = [one for one in asked if isinstance(one, LogicalDeviceConfiguration)]
        if len(ours) == len(asked) and not isinstance(logical_devices, LogicalDeviceConfiguration):
            return ours
    raise device_errors.not_configurations(cast("object", logical_devices))


def _check_known(device: object, kinds: tuple[str, ...] = DEVICE_TYPES) -> None:
    known = [one for kind in kinds for one in list_physical_devices(kind)]
    if not isinstance(device, PhysicalDevice) or device not in known:
        raise device_errors.unknown_device(device, known, kinds)


def _check_possible(device: PhysicalDevice, asked: list[LogicalDeviceConfiguration]) -> None:
    limited = [one for one in asked if one != LogicalDeviceConfiguration()]
    match device.device_type:
        case "CPU" if limited:
            raise device_errors.cpu_takes_no_settings(limited[0])
        case "GPU" if limited or len(asked) != 1:
            raise device_errors.gpu_stays_whole(device, asked)
        case "TPU":
            raise device_errors.tpu_stays_whole()
        case _:
            return


def _check_all_or_no_tpus(chosen: list[PhysicalDevice]) -> None:
    if chosen and chosen != list_physical_devices("TPU"):
        raise device_errors.some_tpus(len(chosen))


def _check_visible_already(choice: dict[str, list[PhysicalDevice]]) -> None:
    if any(chosen != get_visible_devices(kind) for kind, chosen in choice.items()):
        raise device_errors.too_late_to_hide()
