"""`set_log_device_placement`, which cannot log: JAX does not say where it runs an operation."""

import warnings
from typing import Final

_asked: Final = {"log": False}


def set_log_device_placement(enabled: bool) -> None:
    """Remember the choice. True warns that nothing is logged: `x.devices()` of a tensor says where it is.

    Examples:
        >>> import evenfeed as tf
        >>> tf.debugging.set_log_device_placement(False)
    """
    _asked["log"] = bool(enabled)
    if enabled:
        warnings.warn(
            "Device placement is not logged: an operation runs where its arguments are, and x.devices() of a "
            "tensor says where that is.",
            stacklevel=2,
        )


def get_log_device_placement() -> bool:
    """Return what `set_log_device_placement` was given.

    Examples:
        >>> import evenfeed as tf
        >>> tf.debugging.get_log_device_placement()
        False
    """
    return _asked["log"]
