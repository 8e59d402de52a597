"""Settings of memory, precision and execution, as JAX has them: parts of `tf.config` and `tf.config.experimental`."""

# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

import os
from typing import Any, Final

from evenfeed.cluster.jax_private import backend_started
from evenfeed.core.errors import described
from evenfeed.core.lazy_jax import jax
from evenfeed.strategy.device_names import PhysicalDevice
from evenfeed.strategy.devices import jax_device

_PREALLOCATE: Final = "XLA_PYTHON_CLIENT_PREALLOCATE"
_OFF: Final = ("false", "0", "False")
_PRECISION: Final = "jax_default_matmul_precision"


def set_memory_growth(device: PhysicalDevice, enable: bool) -> None:
    """Let the memory of GPUs grow with its use, instead of reserving most of it. It holds for all GPUs.

    It sets the environment variable XLA_PYTHON_CLIENT_PREALLOCATE, which JAX reads when it starts.

    Raises:
        RuntimeError: JAX has started with another setting.
        ValueError: The device is not a GPU.

    Examples:
        >>> import evenfeed as tf
        >>> for gpu in tf.config.list_physical_devices("GPU"):
        ...     tf.config.experimental.set_memory_growth(gpu, True)
    """
    if get_memory_growth(device) == bool(enable):
        return
    if backend_started():
        raise RuntimeError(
            described(
                "Memory growth must be set before JAX starts.",
                fix=f"call set_memory_growth first, or set {_PREALLOCATE}={str(not enable).lower()} in the environment.",
            )
        )
    os.environ[_PREALLOCATE] = str(not enable).lower()


def get_memory_growth(device: PhysicalDevice) -> bool:
    """Return True if the memory of GPUs grows with its use.

    Examples:
        >>> import evenfeed as tf
        >>> [tf.config.experimental.get_memory_growth(gpu) for gpu in tf.config.list_physical_devices("GPU")]
        []
    """
    if device.device_type != "GPU":
        raise ValueError(
            described(
                f"Memory growth is a setting of GPUs, but got {device}.",
                fix='pass a device of evenfeed.config.list_physical_devices("GPU").',
            )
        )
    return os.environ.get(_PREALLOCATE) in _OFF


def get_memory_info(device: str) -> dict[str, int]:
    """Return how many bytes a device uses now ("current"), and the most that it used ("peak").

    Args:
        device: For example "GPU:0".

    Raises:
        ValueError: JAX does not count the memory of the device, as of CPUs.

    Examples:
        >>> import evenfeed as tf
        >>> try:
        ...     tf.config.experimental.get_memory_info("CPU:0")
        ... except ValueError:
        ...     print("not counted")
        not counted
    """
    found: Any = jax_device(device)
    stats: dict[str, Any] | None = found.memory_stats()
    if not stats or "bytes_in_use" not in stats:
        raise ValueError(
            described(f"JAX does not count the memory of {device}.", fix='pass a GPU: "GPU:0".')
        )
    return {"current": int(stats["bytes_in_use"]), "peak": int(stats["peak_bytes_in_use"])}


def get_memory_usage(device: str) -> int:
    """Return how many bytes a device uses now; an older name for a part of `get_memory_info`.

    Examples:
        >>> import evenfeed as tf
        >>> try:
        ...     tf.config.experimental.get_memory_usage("CPU:0")
        ... except ValueError:
        ...     print("not counted")
        not counted
    """
    return get_memory_info(device)["current"]


def get_device_details(device: PhysicalDevice) -> dict[str, Any]:
    """Return what is known of a GPU or TPU: its name, and the compute capability of a GPU. It starts JAX.

    Examples:
        >>> import evenfeed as tf
        >>> tf.config.experimental.get_device_details(tf.config.list_physical_devices("CPU")[0])
        {}
    """
    if device.device_type == "CPU":
        return {}
    found: Any = jax_device(device.name.removeprefix("/physical_device:"))
    details: dict[str, Any] = {"device_name": found.device_kind}
    capability = getattr(found, "compute_capability", None)
    if capability is not None:
        details["compute_capability"] = tuple(int(part) for part in str(capability).split("."))
    return details


def enable_tensor_float_32_execution(enabled: bool) -> None:
    """Let GPUs multiply float32 matrices in 19 bits, which is faster, or forbid it.

    Examples:
        >>> import evenfeed as tf
        >>> tf.config.experimental.enable_tensor_float_32_execution(True)
    """
    jax.config.update(_PRECISION, None if enabled else "highest")


def tensor_float_32_execution_enabled() -> bool:
    """Return True if GPUs may multiply float32 matrices in 19 bits.

    Examples:
        >>> import evenfeed as tf
        >>> tf.config.experimental.tensor_float_32_execution_enabled()
        True
    """
    return getattr(jax.config, _PRECISION) not in ("highest", "float32")


def enable_op_determinism() -> None:
    """Make operations of GPUs deterministic. Those of CPUs and TPUs, and all datasets with seeds, are already.

    It sets a flag in the environment variable XLA_FLAGS, which JAX reads when it starts.

    Raises:
        RuntimeError: JAX has started on GPUs without the flag.

    Examples:
        >>> import evenfeed as tf
        >>> tf.config.experimental.enable_op_determinism()
    """
    flag = "--xla_gpu_deterministic_ops=true"
    flags = os.environ.get("XLA_FLAGS", "")
    if flag in flags:
        return
    if not backend_started():
        os.environ["XLA_FLAGS"] = f"{flags} {flag}".strip()
    elif jax.default_backend() == "gpu":
        raise RuntimeError(
            described(
                "Determinism must be enabled before JAX starts.",
                fix=f"call enable_op_determinism first, or set XLA_FLAGS={flag} in the environment.",
            )
        )


def get_soft_device_placement() -> bool:
    """Return True: XLA places operations where their arguments are.

    Examples:
        >>> import evenfeed as tf
        >>> tf.config.get_soft_device_placement()
        True
    """
    return True


def set_soft_device_placement(enabled: bool) -> None:
    """Accept True. Operations run where their arguments are, so there is nothing to forbid.

    Raises:
        ValueError: `enabled` is False.

    Examples:
        >>> import evenfeed as tf
        >>> tf.config.set_soft_device_placement(True)
    """
    if not enabled:
        raise ValueError(
            described(
                "Soft device placement cannot be turned off.",
                fix='put tensors on a device with `with evenfeed.device("GPU:0"):`.',
            )
        )


def get_jit() -> str:
    """Return "autoclustering": XLA compiles every `evenfeed.function`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.config.optimizer.get_jit()
        'autoclustering'
    """
    return "autoclustering"


def set_jit(enabled: object) -> None:
    """Accept any setting: XLA compiles every `evenfeed.function`, and only `run_functions_eagerly` changes that.

    Examples:
        >>> import evenfeed as tf
        >>> tf.config.optimizer.set_jit("autoclustering")
    """
    if enabled not in (True, False, "autoclustering"):
        raise ValueError(
            described(f"Unknown setting: {enabled!r}.", fix='pass True, False or "autoclustering".')
        )
