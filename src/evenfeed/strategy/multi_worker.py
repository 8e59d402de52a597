"""`MultiWorkerMirroredStrategy`: synchronous training on the devices of several workers."""

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from evenfeed.cluster import gloo
from evenfeed.cluster.communication_options import (
    CommunicationImplementation,
    CommunicationOptions,
    implementation_named,
)
from evenfeed.cluster.communication_options import communication_options as checked_options
from evenfeed.cluster.host_exchange import StoredAgreement, topic_name
from evenfeed.cluster.jax_private import backend_started
from evenfeed.cluster.joining import join
from evenfeed.cluster.membership import Membership, membership_of
from evenfeed.cluster.resolvers.resolver import ClusterResolver
from evenfeed.cluster.resolvers.tf_config import TFConfigClusterResolver
from evenfeed.cluster.survival.guarded_waits import guarded
from evenfeed.core.conversion import shortened
from evenfeed.core.errors import InvalidArgumentError, described
from evenfeed.core.lazy_jax import jax
from evenfeed.feeding.conversation import Topic
from evenfeed.replicas.collectives.device_programs import held_by_all
from evenfeed.replicas.mesh import Replicas
from evenfeed.replicas.session import Session
from evenfeed.strategy.devices import default_devices, device_string, jax_device
from evenfeed.strategy.mirrored import replicas_on
from evenfeed.strategy.strategy import Strategy
from evenfeed.strategy.xla_threads import arrange_threads, ensure_threads


class MultiWorkerMirroredStrategy(Strategy):
    """Synchronous training on several workers, with one replica per device.

    Every worker runs the same program. Without a cluster, this process is the only worker.

    Args:
        cluster_resolver: Lists the workers. By default, reads TF_CONFIG.
        communication_options: Options for collectives between workers.

    Raises:
        ValueError: The cluster has no workers that can train, or this process is not one of them.

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
        super().__init__(_replicas(self._membership, self._communication))

    @property
    def cluster_resolver(self) -> ClusterResolver:
        """Lists the workers, and identifies this process among them."""
        return self._resolver

    @property
    def is_chief(self) -> bool:
        """Whether this worker saves checkpoints for all: the chief, or else worker 0."""
        return self._membership.is_chief

    def device_name(self, device: Any) -> str:
        """Return the full name of a replica's device, with the task of its worker."""
        place: int = device.process_index
        worker = self._membership.workers[place]
        return device_string(device, job=worker.job, task=worker.index)


class _SharedInstances(type):
    """Makes `isinstance` accept any MultiWorkerMirroredStrategy for the experimental class, as in TensorFlow."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, MultiWorkerMirroredStrategy)


class ExperimentalMultiWorkerMirroredStrategy(
    MultiWorkerMirroredStrategy, metaclass=_SharedInstances
):
    """The older form of `MultiWorkerMirroredStrategy`.

    Args:
        communication: The implementation of collectives between workers.
        cluster_resolver: Lists the workers. By default, reads TF_CONFIG.
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


def _replicas(membership: Membership, options: CommunicationOptions) -> Replicas:
    """Return one replica for each device of each worker, ordered by worker."""
    if membership.worker_count > 1:
        arrange_threads()
        if options.timeout_seconds is not None and not backend_started():
            gloo.limit(options.timeout_seconds)
        join(membership)
    if membership.worker_count == 1:
        return replicas_on(_own_devices())
    own = guarded(_own_devices)  # starts the backend, which waits for those of all workers
    _check_possible(options, own)
    ensure_threads(len(own))
    every: Any = jax.devices(own[0].platform)
    devices = sorted(every, key=lambda device: (device.process_index, device.id))
    _check_equal_counts(membership, devices)
    patience = options.timeout_seconds
    agreement = StoredAgreement(membership.place, membership.worker_count, patience)
    # The replicas use a single conversation for everything they agree on during the program.
    conversation = Topic(topic_name(), agreement).next_pass()
    replicas = Replicas.on(devices, Session(conversation.exchange, patience))
    if own[0].platform == "cpu":
        guarded(partial(connect, replicas))
    return replicas


def connect(replicas: Replicas) -> None:
    """Run a first collective over all devices: Gloo then connects the workers.

    Gloo waits half a minute for a worker that dies meanwhile, in native code that nothing interrupts: call it guarded.
    """
    parts = [np.zeros(1, np.float32)] * replicas.local_count
    held_by_all(replicas, replicas.put_pieces(parts, "the first collective"))


def _own_devices() -> list[Any]:
    return [jax_device(name) for name in default_devices()]


def _check_equal_counts(membership: Membership, devices: Sequence[Any]) -> None:
    """Check that all workers have the same number of devices, because batches are split evenly."""
    found = Counter(device.process_index for device in devices)
    counts = [found[place] for place in range(membership.worker_count)]
    if len(set(counts)) > 1:
        listed = ", ".join(
            f"{worker} has {count}"
            for count, worker in zip(counts, membership.workers, strict=True)
        )
        raise InvalidArgumentError(
            f"Workers must have the same number of {devices[0].platform.upper()} devices, but {listed}.",
            fix="give every worker the same number of devices.",
        )


def _check_possible(options: CommunicationOptions, devices: Any) -> None:
    nccl = options.implementation is CommunicationImplementation.NCCL
    if nccl and any(device.platform == "cpu" for device in devices):
        raise InvalidArgumentError(
            "NCCL connects GPUs, but the workers compute on CPUs.",
            fix="leave the implementation out: JAX chooses one that fits the devices.",
        )
