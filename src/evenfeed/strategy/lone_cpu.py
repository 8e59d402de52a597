"""Says once how to get several replicas if a strategy finds only one CPU device."""

from collections.abc import Sequence
from typing import Final, final

from evenfeed.core.lazy import logging
from evenfeed.strategy.device_names import DeviceName
from evenfeed.strategy.devices import get_logical_device_configuration, list_physical_devices


@final
class LoneCpuNotice:
    """Logs that a strategy has one replica, on the CPU, unless the program asked for that."""

    def __init__(self) -> None:
        self._was_logged = False

    def __call__(self, names: Sequence[str]) -> None:
        """Log it once if the only one of a strategy's default devices is the CPU."""
        is_lone = len(names) == 1 and DeviceName.parse(names[0]).device_type == "CPU"
        if self._was_logged or not is_lone or _is_configured():
            return
        self._was_logged = True
        # A warning, because Python shows no lower level by default.
        logging.getLogger("evenfeed").warning(
            "MirroredStrategy found no GPU or TPU: it has one replica, on the CPU. To try several replicas on this "
            'machine, write this first: cpu = tf.config.list_physical_devices("CPU")[0]; '
            "tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 4). "
            "If there is a GPU, install JAX for it: https://docs.jax.dev/en/latest/installation.html"
        )


def _is_configured() -> bool:
    (cpu,) = list_physical_devices("CPU")
    return get_logical_device_configuration(cpu) is not None


say_once_if_alone: Final = LoneCpuNotice()
