"""Numbers of threads, which XLA chooses by itself: `tf.config.threading`."""

import warnings
from typing import Final

from evenfeed.core.arguments import whole_number

_INTER: Final = "inter_op"
_INTRA: Final = "intra_op"
_asked: Final = {_INTER: 0, _INTRA: 0}


def set_inter_op_parallelism_threads(num_threads: int) -> None:
    """Remember a number of threads for independent operations. Any but 0 warns that XLA chooses it.

    Examples:
        >>> import evenfeed as tf
        >>> tf.config.threading.set_inter_op_parallelism_threads(0)
    """
    _set(_INTER, num_threads)


def set_intra_op_parallelism_threads(num_threads: int) -> None:
    """Remember a number of threads for one operation. Any but 0 warns that XLA chooses it.

    Examples:
        >>> import evenfeed as tf
        >>> tf.config.threading.set_intra_op_parallelism_threads(0)
    """
    _set(_INTRA, num_threads)


def get_inter_op_parallelism_threads() -> int:
    """Return what `set_inter_op_parallelism_threads` was given; by default 0.

    Examples:
        >>> import evenfeed as tf
        >>> tf.config.threading.get_inter_op_parallelism_threads()
        0
    """
    return _asked[_INTER]


def get_intra_op_parallelism_threads() -> int:
    """Return what `set_intra_op_parallelism_threads` was given; by default 0.

    Examples:
        >>> import evenfeed as tf
        >>> tf.config.threading.get_intra_op_parallelism_threads()
        0
    """
    return _asked[_INTRA]


def _set(kind: str, num_threads: int) -> None:
    _asked[kind] = whole_number(num_threads, "num_threads")
    if num_threads:
        warnings.warn(
            f"{kind}_parallelism_threads={num_threads} has no effect: XLA chooses the number of threads. Limit it with "
            "the environment variable NPROC, before the program starts; the threads of a dataset with "
            "options.threading.private_threadpool_size.",
            stacklevel=3,
        )
