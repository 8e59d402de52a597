"""`RunOptions`: what `Strategy.run` can be told."""

from typing import Any, NamedTuple


class RunOptions(NamedTuple):
    """Options of `Strategy.run`, taken for compatibility.

    Parts whose lengths differ work without them: JAX compiles a program for each shape.

    Attributes:
        experimental_enable_dynamic_batch_size: Whether the batch size may change.
        experimental_bucketizing_dynamic_shape: Whether lengths are padded to a few.
        experimental_xla_options: Options of XLA.
    """

    experimental_enable_dynamic_batch_size: bool = True
    experimental_bucketizing_dynamic_shape: bool = False
    experimental_xla_options: Any = None
