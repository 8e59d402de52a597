"""`ConfigProto`: what programs of TensorFlow 1 say about a session."""

from dataclasses import dataclass, field
from typing import final


@final
@dataclass
class GPUOptions:
    """What a session may take of GPUs. JAX has settings of its own for that, such as `XLA_PYTHON_CLIENT_PREALLOCATE`.

    Attributes:
        allow_growth: Whether memory is taken when it is needed, and not at once.
        per_process_gpu_memory_fraction: How much of a GPU's memory to take.
        visible_device_list: Which GPUs to use, as numbers with commas.
    """

    allow_growth: bool = False
    per_process_gpu_memory_fraction: float = 0.0
    visible_device_list: str = ""


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
        gpu_options: What to take of GPUs.

    Examples:
        >>> import evenfeed as tf
        >>> config = tf.compat.v1.ConfigProto(allow_soft_placement=True)
        >>> config.gpu_options.allow_growth = True
        >>> strategy = tf.compat.v1.distribute.MirroredStrategy(["CPU:0"])
        >>> strategy.update_config_proto(config).isolate_session_state
        True
    """

    allow_soft_placement: bool = False
    log_device_placement: bool = False
    inter_op_parallelism_threads: int = 0
    intra_op_parallelism_threads: int = 0
    isolate_session_state: bool = False
    device_count: dict[str, int] = field(default_factory=dict[str, int])
    gpu_options: GPUOptions = field(default_factory=GPUOptions)
