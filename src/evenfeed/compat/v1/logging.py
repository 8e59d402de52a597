"""TensorFlow 1's `tf.compat.v1.logging`, on the logger that `evenfeed.get_logger()` returns."""

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from evenfeed.core.publish import publish, refusal
from evenfeed.tensors.control.scopes import get_logger

DEBUG: Final = 10
INFO: Final = 20
WARN: Final = 30
ERROR: Final = 40
FATAL: Final = 50

__all__ = [
    "DEBUG",
    "ERROR",
    "FATAL",
    "INFO",
    "WARN",
    "debug",
    "error",
    "fatal",
    "flush",
    "get_verbosity",
    "info",
    "log",
    "log_every_n",
    "log_first_n",
    "log_if",
    "set_verbosity",
    "vlog",
    "warn",
    "warning",
]

_counts: Final[Counter[str]] = Counter()


def set_verbosity(v: int | str) -> None:
    """Set the level below which messages are not shown.

    Examples:
        >>> import evenfeed as tf
        >>> tf.compat.v1.logging.set_verbosity(tf.compat.v1.logging.ERROR)
        >>> tf.compat.v1.logging.get_verbosity()
        40
        >>> tf.get_logger().setLevel("NOTSET")
    """
    get_logger().setLevel(v)


def get_verbosity() -> int:
    """Return the level below which messages are not shown.

    Examples:
        >>> import evenfeed as tf
        >>> tf.compat.v1.logging.get_verbosity()
        30
    """
    return get_logger().getEffectiveLevel()


def log(level: int, msg: str, *args: Any, exc_info: Any = None) -> None:
    """Log a message at a level.

    Examples:
        >>> import evenfeed as tf
        >>> tf.compat.v1.logging.log(tf.compat.v1.logging.DEBUG, "step %d", 3)
    """
    get_logger().log(level, msg, *args, exc_info=exc_info)


def debug(msg: str, *args: Any, exc_info: Any = None) -> None:
    """Log a message at level DEBUG.

    Examples:
        >>> import evenfeed as tf
        >>> tf.compat.v1.logging.debug("step %d", 3)
    """
    log(DEBUG, msg, *args, exc_info=exc_info)


def info(msg: str, *args: Any, exc_info: Any = None) -> None:
    """Log a message at level INFO.

    Examples:
        >>> import evenfeed as tf
        >>> tf.compat.v1.logging.info("step %d", 3)
    """
    log(INFO, msg, *args, exc_info=exc_info)


def warning(msg: str, *args: Any, exc_info: Any = None) -> None:
    """Log a message at level WARN.

    Examples:
        >>> import evenfeed as tf
        >>> tf.compat.v1.logging.warning("The loss is %s.", "nan")
    """
    log(WARN, msg, *args, exc_info=exc_info)


def warn(msg: str, *args: Any, exc_info: Any = None) -> None:
    """Log a message at level WARN; another name of `warning`.

    Examples:
        >>> import evenfeed as tf
        >>> tf.compat.v1.logging.warn("The loss is %s.", "nan")
    """
    log(WARN, msg, *args, exc_info=exc_info)


def error(msg: str, *args: Any, exc_info: Any = None) -> None:
    """Log a message at level ERROR.

    Examples:
        >>> import evenfeed as tf
        >>> tf.compat.v1.logging.error("No data in %s.", "folder")
    """
    log(ERROR, msg, *args, exc_info=exc_info)


def fatal(msg: str, *args: Any, exc_info: Any = None) -> None:
    """Log a message at level FATAL. The program goes on.

    Examples:
        >>> import evenfeed as tf
        >>> tf.compat.v1.logging.fatal("No data in %s.", "folder")
    """
    log(FATAL, msg, *args, exc_info=exc_info)


def vlog(level: int, msg: str, *args: Any, exc_info: Any = None) -> None:
    """Log a message at a level of Python's logging.

    Examples:
        >>> import evenfeed as tf
        >>> tf.compat.v1.logging.vlog(1, "details")
    """
    log(level, msg, *args, exc_info=exc_info)


def log_if(level: int, msg: str, condition: object, *args: Any) -> None:
    """Log a message if a condition holds.

    Examples:
        >>> import evenfeed as tf
        >>> tf.compat.v1.logging.log_if(tf.compat.v1.logging.INFO, "slow", False)
    """
    if condition:
        log(level, msg, *args)


def log_first_n(level: int, msg: str, n: int, *args: Any) -> None:
    """Log the first `n` messages of this text.

    Examples:
        >>> import evenfeed as tf
        >>> tf.compat.v1.logging.log_first_n(tf.compat.v1.logging.INFO, "slow", 2)
    """
    _counts[msg] += 1
    log_if(level, msg, _counts[msg] <= n, *args)


def log_every_n(level: int, msg: str, n: int, *args: Any) -> None:
    """Log the first of every `n` messages of this text.

    Examples:
        >>> import evenfeed as tf
        >>> tf.compat.v1.logging.log_every_n(tf.compat.v1.logging.INFO, "slow", 2)
    """
    _counts[msg] += 1
    log_if(level, msg, _counts[msg] % n == 1 % n, *args)


def flush() -> None:
    """Write out what the handlers of the logger hold.

    Examples:
        >>> import evenfeed as tf
        >>> tf.compat.v1.logging.flush()
    """
    for handler in get_logger().handlers:
        handler.flush()


publish(__name__, __all__, globals())

if not TYPE_CHECKING:
    __getattr__ = refusal(
        __name__, __all__, "The page of names in the docs lists what evenfeed provides."
    )
