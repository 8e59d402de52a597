"""`OneDeviceStrategy`: run everything on one named device."""

from typing import Any

from evenfeed.replicas.mesh import Replicas
from evenfeed.strategy.devices import jax_device
from evenfeed.strategy.strategy import Strategy


class OneDeviceStrategy(Strategy):
    """One replica on one named device. Values and variables are plain arrays and variables.

    Args:
        device: A name such as `"GPU:0"`.

    Examples:
        >>> import evenfeed as tf
        >>> strategy = tf.distribute.OneDeviceStrategy("CPU:0")
        >>> float(strategy.run(lambda x: x * 2, args=(tf.constant(3.0),)))
        6.0
    """

    mirrors = False

    def __init__(self, device: str) -> None:
        found: Any = jax_device(device)
        super().__init__(Replicas.on([found]))
