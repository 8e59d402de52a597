"""Memory, precision and older names of devices: TensorFlow's `tf.config.experimental`."""

from typing import TYPE_CHECKING

from evenfeed.core.publish import publish, refusal
from evenfeed.strategy.devices import LogicalDeviceConfiguration as VirtualDeviceConfiguration
from evenfeed.strategy.devices import (
    get_logical_device_configuration as get_virtual_device_configuration,
)
from evenfeed.strategy.devices import (
    get_visible_devices,
    list_logical_devices,
    list_physical_devices,
    set_visible_devices,
)
from evenfeed.strategy.devices import (
    set_logical_device_configuration as set_virtual_device_configuration,
)
from evenfeed.strategy.execution_settings import (
    enable_op_determinism,
    enable_tensor_float_32_execution,
    get_device_details,
    get_memory_growth,
    get_memory_info,
    get_memory_usage,
    set_memory_growth,
    tensor_float_32_execution_enabled,
)

__all__ = [
    "VirtualDeviceConfiguration",
    "enable_op_determinism",
    "enable_tensor_float_32_execution",
    "get_device_details",
    "get_memory_growth",
    "get_memory_info",
    "get_memory_usage",
    "get_virtual_device_configuration",
    "get_visible_devices",
    "list_logical_devices",
    "list_physical_devices",
    "set_memory_growth",
    "set_virtual_device_configuration",
    "set_visible_devices",
    "tensor_float_32_execution_enabled",
]

publish(__name__, __all__, globals())

if not TYPE_CHECKING:
    __getattr__ = refusal(
        __name__, __all__, "The page of names in the docs lists what evenfeed provides."
    )
