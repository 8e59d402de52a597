"""Strategies and distributed datasets: TensorFlow's `tf.distribute`."""

from typing import TYPE_CHECKING

from evenfeed.core.publish import publish, refusal
from evenfeed.distribute import cluster_resolver, experimental
from evenfeed.feeding.distributed_dataset import DistributedDataset, DistributedIterator
from evenfeed.feeding.input_options import InputContext, InputOptions, InputReplicationMode
from evenfeed.feeding.meshes.global_batches import GlobalBatches, global_batches
from evenfeed.replicas.mirrored_values import Mirrored
from evenfeed.replicas.reduce.reduce_op import ReduceOp
from evenfeed.replicas.reduce.valid_rows import valid_mean
from evenfeed.replicas.replica_context import ReplicaContext
from evenfeed.replicas.values import DistributedValues, PerReplica
from evenfeed.strategy.cross_device_ops import (
    CrossDeviceOps,
    HierarchicalCopyAllReduce,
    NcclAllReduce,
    ReductionToOneDevice,
)
from evenfeed.strategy.current import (
    experimental_set_strategy,
    get_replica_context,
    get_strategy,
    has_strategy,
    in_cross_replica_context,
)
from evenfeed.strategy.extended import StrategyExtended
from evenfeed.strategy.mesh_strategy import MeshStrategy
from evenfeed.strategy.mirrored import MirroredStrategy
from evenfeed.strategy.multi_worker import MultiWorkerMirroredStrategy
from evenfeed.strategy.one_device import OneDeviceStrategy
from evenfeed.strategy.strategy import RunOptions, Strategy, ValueContext
from evenfeed.strategy.tpu_strategy import TPUStrategy

__all__ = [
    "CrossDeviceOps",
    "DistributedDataset",
    "DistributedIterator",
    "DistributedValues",
    "GlobalBatches",
    "HierarchicalCopyAllReduce",
    "InputContext",
    "InputOptions",
    "InputReplicationMode",
    "MeshStrategy",
    "Mirrored",
    "MirroredStrategy",
    "MultiWorkerMirroredStrategy",
    "NcclAllReduce",
    "OneDeviceStrategy",
    "PerReplica",
    "ReduceOp",
    "ReductionToOneDevice",
    "ReplicaContext",
    "RunOptions",
    "Strategy",
    "StrategyExtended",
    "TPUStrategy",
    "ValueContext",
    "cluster_resolver",
    "experimental",
    "experimental_set_strategy",
    "get_replica_context",
    "get_strategy",
    "global_batches",
    "has_strategy",
    "in_cross_replica_context",
    "valid_mean",
]

publish(__name__, __all__, globals())

if not TYPE_CHECKING:
    __getattr__ = refusal(
        __name__, __all__, "The page of names in the docs lists what evenfeed provides."
    )
