"""Cluster resolvers, which find the workers of a cluster: TensorFlow's `tf.distribute.cluster_resolver`."""

from typing import TYPE_CHECKING

from evenfeed.cluster.resolvers.kubernetes import (
    KubernetesClusterResolver,
    KubernetesExecutableLocation,
)
from evenfeed.cluster.resolvers.mpi import MPIClusterResolver
from evenfeed.cluster.resolvers.resolver import (
    ClusterResolver,
    SimpleClusterResolver,
    UnionResolver,
)
from evenfeed.cluster.resolvers.slurm import SlurmClusterResolver
from evenfeed.cluster.resolvers.tf_config import TFConfigClusterResolver
from evenfeed.cluster.resolvers.tpu_resolver import TPUClusterResolver
from evenfeed.core.publish import publish, refusal

__all__ = [
    "ClusterResolver",
    "KubernetesClusterResolver",
    "KubernetesExecutableLocation",
    "MPIClusterResolver",
    "SimpleClusterResolver",
    "SlurmClusterResolver",
    "TFConfigClusterResolver",
    "TPUClusterResolver",
    "UnionResolver",
]

publish(__name__, __all__, globals())

if not TYPE_CHECKING:
    __getattr__ = refusal(
        __name__, __all__, "The page of names in the docs lists what evenfeed provides."
    )
