"""The debug mode of datasets: user functions run as plain Python, element by element, in the consumer's thread."""

from typing import Final, final


@final
class _Mode:
    """How new datasets run, in all threads."""

    def __init__(self) -> None:
        self.is_debugging = False


mode: Final = _Mode()


def enable_debug_mode() -> None:
    """Run the functions of datasets that are created from now on as plain Python, for debuggers and prints.

    Each function is called with one element at a time, when that element is read, in the thread that reads it.
    `num_parallel_calls`, `processes`, `vectorize` and `prefetch` have no effect. A function is still traced
    once, to find the specs of its results.

    Examples:
        >>> import evenfeed as tf
        >>> tf.data.experimental.enable_debug_mode()  # doctest: +SKIP
        >>> dataset = tf.data.Dataset.range(2).map(lambda x: breakpoint() or x + 1)  # doctest: +SKIP
    """
    mode.is_debugging = True


def vectorization(asked: bool | None = None) -> bool | None:
    """Return the setting for `vectorize`: False in debug mode."""
    return False if mode.is_debugging else asked


def calls_at_a_time(asked: int | None) -> int | None:
    """Return the setting for `num_parallel_calls`: None in debug mode."""
    return None if mode.is_debugging else asked
