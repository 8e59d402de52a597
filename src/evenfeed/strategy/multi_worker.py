"""Synchronous training on the devices of several workers."""

from typing import Any

from evenfeed.cluster.communication import (
    CommunicationImplementation,
    CommunicationOptions,
    implementation_named,
)
from evenfeed.cluster.communication import (
    communication_options as checked_options,
)
from evenfeed.cluster.membership import Membership, membership_of
from evenfeed.cluster.resolver import ClusterResolver
from evenfeed.cluster.tf_config import TFConfigClusterResolver
from evenfeed.core.conversion import shortened
from evenfeed.core.errors import UnimplementedError, described
from evenfeed.strategy.mirrored import local_replicas
from evenfeed.strategy.strategy import Strategy


class MultiWorkerMirroredStrategy(Strategy):
    """One replica on each device of each worker, all in step.

    Every worker runs the same program. Without a cluster there is one worker, this process.

    Args:
        cluster_resolver: Says who the workers are; by default what TF_CONFIG says.
        communication_options: What holds for collectives between workers.

    Raises:
        ValueError: The cluster cannot train, or this process is none of it.

    Examples:
        >>> import evenfeed as tf
        >>> strategy = tf.distribute.MultiWorkerMirroredStrategy()
        >>> strategy.num_replicas_in_sync == len(tf.config.list_logical_devices("CPU"))
        True
    """

    def __init__(
        self,
        cluster_resolver: ClusterResolver | None = None,
        communication_options: CommunicationOptions | None = None,
    ) -> None:
        self._resolver = _resolver(cluster_resolver)
        self._communication = checked_options(communication_options)
        self._membership = membership_of(self._resolver)
        if self._membership.worker_count > 1:
            raise _not_yet(self._membership)
        super().__init__(local_replicas())

    @property
    def cluster_resolver(self) -> ClusterResolver:
        """Says who the workers are, and which of them this process is."""
        return self._resolver

    @property
    def is_chief(self) -> bool:
        """Whether this worker saves for all: the chief, or else worker 0."""
        return self._membership.is_chief


class _Recognises(type):
    """Makes the experimental class recognise what the other one makes, as in TensorFlow."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, MultiWorkerMirroredStrategy)


class ExperimentalMultiWorkerMirroredStrategy(MultiWorkerMirroredStrategy, metaclass=_Recognises):
    """The older form of `MultiWorkerMirroredStrategy`.

    Args:
        communication: What brings values from worker to worker.
        cluster_resolver: Says who the workers are; by default what TF_CONFIG says.
    """

    def __init__(
        self,
        communication: CommunicationImplementation = CommunicationImplementation.AUTO,
        cluster_resolver: ClusterResolver | None = None,
    ) -> None:
        options = CommunicationOptions(implementation=implementation_named(communication))
        super().__init__(cluster_resolver, options)


ExperimentalMultiWorkerMirroredStrategy.__name__ = "MultiWorkerMirroredStrategy"
ExperimentalMultiWorkerMirroredStrategy.__qualname__ = "MultiWorkerMirroredStrategy"


def _resolver(given: object) -> ClusterResolver:
    if given is None:
        return TFConfigClusterResolver()
    if isinstance(given, ClusterResolver):
        return given
    raise ValueError(
        described(
            f"cluster_resolver must be a ClusterResolver, but got {shortened(given)}.",
            fix="pass one of evenfeed.distribute.cluster_resolver, or set TF_CONFIG and pass nothing.",
        )
    )


def _not_yet(membership: Membership) -> Any:
    return UnimplementedError(
        f"The cluster has {membership.worker_count} workers; one is possible so far.",
        fix="unset TF_CONFIG, and train on the devices of one machine.",
    )
