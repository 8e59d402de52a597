"""Experimental names: TensorFlow's `tf.distribute.experimental`."""

from typing import TYPE_CHECKING

from evenfeed.checkpoints.preemption import PreemptionCheckpointHandler, PreemptionWatcher
from evenfeed.checkpoints.termination import TerminationConfig
from evenfeed.cluster.communication_options import CommunicationImplementation, CommunicationOptions
from evenfeed.core.publish import publish, refusal
from evenfeed.strategy.multi_worker import (
    ExperimentalMultiWorkerMirroredStrategy as MultiWorkerMirroredStrategy,
)
from evenfeed.strategy.strategy import ValueContext
from evenfeed.strategy.tpu_strategy import TPUStrategy

CollectiveCommunication = CommunicationImplementation

__all__ = [
    "CollectiveCommunication",
    "CommunicationImplementation",
    "CommunicationOptions",
    "MultiWorkerMirroredStrategy",
    "PreemptionCheckpointHandler",
    "PreemptionWatcher",
    "TPUStrategy",
    "TerminationConfig",
    "ValueContext",
]

publish(__name__, __all__, globals())

if not TYPE_CHECKING:
    __getattr__ = refusal(
        __name__, __all__, "The page of names in the docs lists what evenfeed provides."
    )
