"""The experimental names of TensorFlow 1: `tf.compat.v1.distribute.experimental`."""

from typing import TYPE_CHECKING

from evenfeed.core.publish import publish, refusal
from evenfeed.distribute.experimental import (
    CollectiveCommunication,
    CommunicationImplementation,
    CommunicationOptions,
)
from evenfeed.strategy.tf1_strategies import (
    MultiWorkerMirroredStrategyV1 as MultiWorkerMirroredStrategy,
)

__all__ = [
    "CollectiveCommunication",
    "CommunicationImplementation",
    "CommunicationOptions",
    "MultiWorkerMirroredStrategy",
]

publish(__name__, __all__, globals())

if not TYPE_CHECKING:
    __getattr__ = refusal(
        __name__, __all__, "The page of names in the docs lists what evenfeed provides."
    )
