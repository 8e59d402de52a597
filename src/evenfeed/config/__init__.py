"""Devices and eager execution: TensorFlow's `tf.config`."""

from typing import TYPE_CHECKING

from evenfeed.config import experimental, optimizer, threading
from evenfeed.core.publish import publish, refusal
from evenfeed.replicas.function.plain_python import functions_run_eagerly, run_functions_eagerly
from evenfeed.replicas.function.plain_python import (
    functions_run_eagerly as experimental_functions_run_eagerly,
)
from evenfeed.replicas.function.plain_python import (
    run_functions_eagerly as experimental_run_functions_eagerly,
)
from evenfeed.strategy.device_names import LogicalDevice, PhysicalDevice
from evenfeed.strategy.devices import (
    LogicalDeviceConfiguration,
    get_logical_device_configuration,
    get_visible_devices,
    list_logical_devices,
    list_physical_devices,
    set_logical_device_configuration,
    set_visible_devices,
)
from evenfeed.strategy.execution_settings import (
    get_soft_device_placement,
    set_soft_device_placement,
)
from evenfeed.strategy.tpu_strategy import experimental_connect_to_cluster

__all__ = [
    "LogicalDevice",
    "LogicalDeviceConfiguration",
    "PhysicalDevice",
    "experimental",
    "experimental_connect_to_cluster",
    "experimental_functions_run_eagerly",
    "experimental_run_functions_eagerly",
    "functions_run_eagerly",
    "get_logical_device_configuration",
    "get_soft_device_placement",
    "get_visible_devices",
    "list_logical_devices",
    "list_physical_devices",
    "optimizer",
    "run_functions_eagerly",
    "set_logical_device_configuration",
    "set_soft_device_placement",
    "set_visible_devices",
    "threading",
]

publish(__name__, __all__, globals())

if not TYPE_CHECKING:
    __getattr__ = refusal(
        __name__, __all__, "The page of names in the docs lists what evenfeed provides."
    )
