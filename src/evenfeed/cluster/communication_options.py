"""`CommunicationOptions`: settings for the collectives between workers."""

from dataclasses import dataclass, replace
from enum import Enum

from evenfeed.core.arguments import seconds_of, whole_number
from evenfeed.core.conversion import shortened
from evenfeed.core.errors import described


class CommunicationImplementation(Enum):
    """How values travel between workers.

    JAX has one implementation for each kind of device: Gloo between CPUs, NCCL between GPUs, the interconnect
    between TPUs. AUTO and RING use it; NCCL raises an error if several workers compute on CPUs.
    """

    AUTO = "AUTO"
    RING = "RING"
    NCCL = "NCCL"


@dataclass(init=False)
class CommunicationOptions:
    """Settings for collectives between workers.

    Args:
        bytes_per_pack: Accepted for compatibility; XLA combines small collectives by itself.
        timeout_seconds: How long to wait for a worker that is running: for information about its data (None for five
            minutes), and on CPUs for it to enter a collective (None for half an hour, XLA's default; the first
            strategy of a program decides). A lost worker is noticed sooner.
        implementation: A CommunicationImplementation, or its name.

    Raises:
        ValueError: bytes_per_pack is negative, or there is no such implementation.

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
    """Return an implementation by enum member or by name, in upper or lower case."""
    if isinstance(given, CommunicationImplementation):
        return given
    if isinstance(given, str) and given.upper() in CommunicationImplementation.__members__:
        return CommunicationImplementation[given.upper()]
    raise ValueError(
        described(
            f"There is no communication implementation {shortened(given)}.",
            fix="pass AUTO, RING or NCCL of evenfeed.distribute.experimental.CommunicationImplementation.",
        )
    )


def communication_options(given: object) -> CommunicationOptions:
    """Return a copy of the user's options, or the default."""
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
