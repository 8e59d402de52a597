"""The strategies of TensorFlow 1: `tf.compat.v1.distribute`."""

from typing import TYPE_CHECKING

from evenfeed.compat.v1.distribute import experimental
from evenfeed.core.publish import publish, refusal
from evenfeed.distribute import (
    CrossDeviceOps,
    HierarchicalCopyAllReduce,
    InputContext,
    InputReplicationMode,
    NcclAllReduce,
    ReduceOp,
    ReductionToOneDevice,
    ReplicaContext,
    RunOptions,
    StrategyExtended,
    cluster_resolver,
    experimental_set_strategy,
    get_replica_context,
    get_strategy,
    has_strategy,
    in_cross_replica_context,
)
from evenfeed.strategy.tf1_strategies import MirroredStrategyV1 as MirroredStrategy
from evenfeed.strategy.tf1_strategies import OneDeviceStrategyV1 as OneDeviceStrategy
from evenfeed.strategy.tf1_strategies import StrategyV1 as Strategy


def get_loss_reduction() -> ReduceOp:
    """Return the reduction for the losses of replicas, `ReduceOp.MEAN`."""
    return ReduceOp.MEAN


__all__ = [
    "CrossDeviceOps",
    "HierarchicalCopyAllReduce",
    "InputContext",
    "InputReplicationMode",
    "MirroredStrategy",
    "NcclAllReduce",
    "OneDeviceStrategy",
    "ReduceOp",
    "ReductionToOneDevice",
    "ReplicaContext",
    "RunOptions",
    "Strategy",
    "StrategyExtended",
    "cluster_resolver",
    "experimental",
    "experimental_set_strategy",
    "get_loss_reduction",
    "get_replica_context",
    "get_strategy",
    "has_strategy",
    "in_cross_replica_context",
]

publish(__name__, __all__, globals())

if not TYPE_CHECKING:
    __getattr__ = refusal(
        __name__, __all__, "The page of names in the docs lists what evenfeed provides."
    )
