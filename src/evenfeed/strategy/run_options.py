"""`RunOptions`: what `Strategy.run` can be told."""

from typing import Any, NamedTuple


class RunOptions(NamedTuple):
    """Options of `Strategy.run`, taken for compatibility.

    Parts whose lengths differ work without them: JAX compiles a program for each shape.
    """

    #: Whether the batch size may change.
    experimental_enable_dynamic_batch_size: bool = True
    #: Whether lengths are padded to a few.
    experimental_bucketizing_dynamic_shape: bool = False
    #: Options of XLA.
    experimental_xla_options: Any = None
