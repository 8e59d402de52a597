"""Profiles that TensorBoard shows: TensorFlow's `tf.profiler.experimental`, on JAX's profiler."""

from types import TracebackType
from typing import Any, NamedTuple, final

from evenfeed.core.errors import AlreadyExistsError, UnavailableError
from evenfeed.core.lazy_jax import jax


class ProfilerOptions(NamedTuple):
    """What a profile records.

    Args:
        host_tracer_level: 0 for nothing of the host, 1 for your traces, 2 for large operations, 3 for all.
        python_tracer_level: 1 to record calls of Python functions.
        device_tracer_level: Accepted for compatibility; JAX always records devices.
        delay_ms: Accepted for compatibility.

    Examples:
        >>> import evenfeed as tf
        >>> tf.profiler.experimental.ProfilerOptions(host_tracer_level=3).python_tracer_level
        0
    """

    host_tracer_level: int = 2
    python_tracer_level: int = 0
    device_tracer_level: int = 1
    delay_ms: int | None = None


def start(logdir: Any, options: ProfilerOptions | None = None) -> None:
    """Start to record a profile. `stop` writes it for TensorBoard.

    Args:
        logdir: The directory of TensorBoard.
        options: What to record.

    Raises:
        AlreadyExistsError: A profile is being recorded.

    Examples:
        >>> import tempfile
        >>> import evenfeed as tf
        >>> folder = tempfile.TemporaryDirectory()
        >>> tf.profiler.experimental.start(folder.name)
        >>> tf.profiler.experimental.stop()
        >>> folder.cleanup()
    """
    wanted = options or ProfilerOptions()
    chosen: Any = jax.profiler.ProfileOptions()
    chosen.host_tracer_level = wanted.host_tracer_level
    chosen.python_tracer_level = wanted.python_tracer_level
    try:
        jax.profiler.start_trace(logdir, profiler_options=chosen)
    except RuntimeError as error:
        if "already been started" not in str(error):
            raise
        raise AlreadyExistsError(
            "A profile is being recorded already.",
            fix="call evenfeed.profiler.experimental.stop().",
        ) from error


def stop(save: bool = True) -> None:
    """End the profile, and write it.

    Args:
        save: Accepted for compatibility; JAX always writes the profile.

    Raises:
        UnavailableError: No profile is being recorded.

    Examples:
        >>> import evenfeed as tf
        >>> try:
        ...     tf.profiler.experimental.stop()
        ... except tf.errors.UnavailableError:
        ...     print("not started")
        not started
    """
    del save
    try:
        jax.profiler.stop_trace()
    except RuntimeError as error:
        if "No profile started" not in str(error):
            raise
        raise UnavailableError(
            "No profile is being recorded.",
            fix="call evenfeed.profiler.experimental.start(logdir) first.",
        ) from error


@final
class Profile:
    """Records a profile of a block; see `start`.

    Examples:
        >>> import tempfile
        >>> import evenfeed as tf
        >>> folder = tempfile.TemporaryDirectory()
        >>> with tf.profiler.experimental.Profile(folder.name):
        ...     total = tf.reduce_sum([1, 2])
        >>> folder.cleanup()
    """

    def __init__(self, logdir: Any, options: ProfilerOptions | None = None) -> None:
        self._logdir = logdir
        self._options = options

    def __enter__(self) -> None:
        start(self._logdir, self._options)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        stop()


@final
class Trace:
    """Names a block in the profile, for example a step of training: `Trace("train", step_num=step, _r=1)`.

    Examples:
        >>> import evenfeed as tf
        >>> for step in range(2):
        ...     with tf.profiler.experimental.Trace("train", step_num=step, _r=1):
        ...         total = tf.reduce_sum([step, 2])
    """

    def __init__(self, name: str, **kwargs: Any) -> None:
        self._annotation: Any = jax.profiler.TraceAnnotation(name, **kwargs)

    def __enter__(self) -> "Trace":
        self._annotation.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._annotation.__exit__(kind, error, traceback)

    def set_metadata(self, **kwargs: Any) -> None:
        """Add values that the profile shows beside the name."""
        self._annotation.set_metadata(**kwargs)
