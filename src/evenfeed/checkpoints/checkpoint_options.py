"""`CheckpointOptions`: how a checkpoint is saved."""

import inspect
from collections.abc import Callable, Sequence
from typing import Any, final

from evenfeed.core.errors import UnimplementedError


@final
class CheckpointOptions:
    """How a checkpoint is saved.

    Args:
        experimental_io_device: Accepted for compatibility: each worker writes its own values.
        experimental_enable_async_checkpoint: Copy the values, and write them in the background. `sync` waits for it.
        experimental_write_callbacks: Functions to call on worker 0 when the checkpoint is complete, with its path or
            without an argument.
        enable_async: The newer name of `experimental_enable_async_checkpoint`.
        experimental_skip_slot_variables: Accepted for compatibility: it is about Keras optimizers.
        experimental_sharding_callback: Not supported: Orbax divides the values into files.

    Examples:
        >>> import evenfeed as tf
        >>> tf.train.CheckpointOptions(enable_async=True).experimental_enable_async_checkpoint
        True
    """

    def __init__(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
        self,
        experimental_io_device: str | None = None,
        experimental_enable_async_checkpoint: bool = False,
        experimental_write_callbacks: Sequence[Callable[..., Any]] | None = None,
        enable_async: bool = False,
        experimental_skip_slot_variables: bool = False,
        experimental_sharding_callback: object = None,
    ) -> None:
        if experimental_sharding_callback is not None:
            raise UnimplementedError(
                "experimental_sharding_callback divides a checkpoint into files; Orbax does that here.",
                fix="leave it out.",
            )
        self.experimental_io_device = experimental_io_device
        self.experimental_enable_async_checkpoint = bool(
            experimental_enable_async_checkpoint or enable_async
        )
        self.experimental_write_callbacks = experimental_write_callbacks
        self.experimental_skip_slot_variables = experimental_skip_slot_variables
        self.experimental_sharding_callback = None

    @property
    def enable_async(self) -> bool:
        """Whether the values are written in the background."""
        return self.experimental_enable_async_checkpoint


def call_back(options: CheckpointOptions, path: str) -> None:
    """Call the functions that wait for a complete checkpoint."""
    for function in options.experimental_write_callbacks or ():
        takes_path = inspect.signature(function).parameters
        function(path) if takes_path else function()
