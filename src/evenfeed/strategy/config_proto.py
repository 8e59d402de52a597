"""`ConfigProto`: what programs of TensorFlow 1 say about a session."""

from dataclasses import dataclass, field
from typing import final


@final
@dataclass
class ConfigProto:
    """The configuration of a session, for programs that pass one on; there are no sessions, so nothing reads it.

    Attributes:
        allow_soft_placement: Whether another device may be taken than the one that was named.
        log_device_placement: Whether to say where operations run.
        inter_op_parallelism_threads: How many operations to run at a time.
        intra_op_parallelism_threads: How many threads one operation may have.
        isolate_session_state: Whether sessions share no state.
        device_count: How many devices of each type to use.
    """

    allow_soft_placement: bool = False
    log_device_placement: bool = False
    inter_op_parallelism_threads: int = 0
    intra_op_parallelism_threads: int = 0
    isolate_session_state: bool = False
    device_count: dict[str, int] = field(default_factory=dict[str, int])
