"""Data and computation over replicas: TensorFlow's `tf.distribute`."""

from typing import TYPE_CHECKING

from evenfeed.core.publish import publish, refusal
from evenfeed.strategy.distributed_dataset import DistributedDataset, DistributedIterator
from evenfeed.strategy.mirrored import MirroredStrategy
from evenfeed.strategy.values import DistributedValues, PerReplica

__all__ = [
    "DistributedDataset",
    "DistributedIterator",
    "DistributedValues",
    "MirroredStrategy",
    "PerReplica",
]

publish(__name__, __all__, globals())

if not TYPE_CHECKING:
    __getattr__ = refusal(__name__, __all__, "The README lists what exists now.")
