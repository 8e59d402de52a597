"""`CommunicationOptions`: what a program says of the collectives between workers."""

from dataclasses import dataclass, replace
from enum import Enum

from evenfeed.core.arguments import seconds_of, whole_number
from evenfeed.core.conversion import shortened
from evenfeed.core.errors import described


class CommunicationImplementation(Enum):
    """What brings values from worker to worker.

    JAX has one way for each kind of device: Gloo between CPUs, NCCL between GPUs, the interconnect between
    TPUs. AUTO and RING take it as it is; NCCL is refused where several workers compute on CPUs.
    """

    AUTO = "AUTO"
    RING = "RING"
    NCCL = "NCCL"


@dataclass(init=False)
class CommunicationOptions:
    """What holds for collectives between workers.

    Args:
        bytes_per_pack: Taken for compatibility: XLA joins small collectives by itself.
        timeout_seconds: How long to wait for a worker that is there: for what it says of its data (None for five
            minutes), and between CPUs for it to come to a collective (None for half an hour, as XLA has it; the first
            strategy of a program decides). One that is lost is not waited for.
        implementation: A CommunicationImplementation, or its name.

    Raises:
        ValueError: The bytes are fewer than 0, or there is no such implementation.

    Examples:
        >>> import evenfeed as tf
        >>> tf.distribute.experimental.CommunicationOptions(timeout_seconds=60, implementation="ring")
        CommunicationOptions(bytes_per_pack=0, timeout_seconds=60.0,
            implementation=<CommunicationImplementation.RING: 'RING'>)
    """

    bytes_per_pack: int
    timeout_seconds: float | None
    implementation: CommunicationImplementation

    def __init__(
        self,
        bytes_per_pack: int = 0,
        timeout_seconds: float | None = None,
        implementation: CommunicationImplementation | str = CommunicationImplementation.AUTO,
    ) -> None:
        if whole_number(bytes_per_pack, "bytes_per_pack") < 0:
            raise ValueError(
                described(
                    f"bytes_per_pack must be at least 0, but got {bytes_per_pack}.",
                    fix="pass 0, or nothing.",
                )
            )
        self.bytes_per_pack = bytes_per_pack
        self.timeout_seconds = (
            None if timeout_seconds is None else seconds_of(timeout_seconds, "timeout_seconds")
        )
        self.implementation = implementation_named(implementation)


def implementation_named(given: object) -> CommunicationImplementation:
    """Return an implementation that a user named, by the enum or in letters of any case."""
    if isinstance(given, CommunicationImplementation):
        return given
    if isinstance(given, str) and given.upper() in CommunicationImplementation.__members__:
        return CommunicationImplementation[given.upper()]
    raise ValueError(
        described(
            f"There is no implementation {shortened(given)}.",
            fix="pass AUTO, RING or NCCL of evenfeed.distribute.experimental.CommunicationImplementation.",
        )
    )


def communication_options(given: object) -> CommunicationOptions:
    """Return a copy of what a user passed, or the default."""
    if given is None:
        return CommunicationOptions()
    if isinstance(given, CommunicationOptions):
        return replace(given)
    raise ValueError(
        described(
            f"communication_options must be CommunicationOptions, but got {shortened(given)}.",
            fix="pass evenfeed.distribute.experimental.CommunicationOptions(timeout_seconds=60).",
        )
    )
