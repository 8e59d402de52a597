"""`TPUStrategy`, and the calls that prepare TPUs in TensorFlow: JAX prepares them itself."""

from typing import Any

from evenfeed.cluster.resolvers.resolver import ClusterResolver
from evenfeed.cluster.resolvers.spec import ClusterSpec
from evenfeed.cluster.resolvers.tpu_resolver import TPUClusterResolver
from evenfeed.core.conversion import shortened
from evenfeed.core.errors import UnimplementedError, described
from evenfeed.core.lazy_jax import jax
from evenfeed.strategy.devices import list_logical_devices
from evenfeed.strategy.mirrored import MirroredStrategy


class TPUStrategy(MirroredStrategy):
    """Synchronous training on all TPUs of this machine, with one replica per TPU.

    Args:
        tpu_cluster_resolver: A TPUClusterResolver; by default a new one.
        experimental_device_assignment: Must be None: there is one replica for each TPU.
        experimental_spmd_xla_partitioning: Must be False: use a MeshStrategy to split a model over TPUs.

    Raises:
        TypeError: The resolver is something else.
        ValueError: JAX computes on no TPU here.
        UnimplementedError: The TPUs of several hosts are connected.
    """

    def __init__(
        self,
        tpu_cluster_resolver: TPUClusterResolver | None = None,
        experimental_device_assignment: None = None,
        experimental_spmd_xla_partitioning: bool = False,
    ) -> None:
        if experimental_device_assignment is not None or experimental_spmd_xla_partitioning:
            raise UnimplementedError(
                "TPUStrategy has one replica for each TPU.",
                fix="use tf.distribute.MeshStrategy(mesh), which lays out replicas and models on any mesh.",
            )
        self._resolver = _checked(tpu_cluster_resolver)
        devices = list_logical_devices("TPU")
        _check_one_host()
        super().__init__(devices)

    @property
    def cluster_resolver(self) -> TPUClusterResolver:
        """The resolver that found the TPUs."""
        return self._resolver


def initialize_tpu_system(cluster_resolver: TPUClusterResolver | None = None) -> None:
    """Check that there are TPUs. JAX prepares them at their first use.

    Args:
        cluster_resolver: A TPUClusterResolver; by default a new one.

    Raises:
        ValueError: JAX computes on no TPU here.
    """
    _checked(cluster_resolver)


def shutdown_tpu_system(cluster_resolver: TPUClusterResolver | None = None) -> None:
    """Do nothing: JAX gives the TPUs back when the program ends.

    Args:
        cluster_resolver: Has no effect.
    """
    del cluster_resolver


def experimental_connect_to_cluster(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
    cluster_spec_or_resolver: ClusterSpec | ClusterResolver,
    job_name: str = "localhost",
    task_index: int = 0,
    protocol: str | None = None,
    make_master_device_default: bool = True,
    cluster_device_filters: Any = None,
) -> None:
    """Accept the TPUs of this machine, which need no connection.

    Args:
        cluster_spec_or_resolver: A TPUClusterResolver, or a cluster without other machines.
        job_name: Has no effect.
        task_index: Has no effect.
        protocol: Has no effect.
        make_master_device_default: Has no effect.
        cluster_device_filters: Has no effect.

    Raises:
        ValueError: It is neither a ClusterSpec nor a ClusterResolver.
        UnimplementedError: The cluster has tasks: one program does not drive other machines.
    """
    del job_name, task_index, protocol, make_master_device_default, cluster_device_filters
    asked: Any = cluster_spec_or_resolver
    spec = asked.cluster_spec() if isinstance(asked, ClusterResolver) else asked
    if not isinstance(spec, ClusterSpec):
        raise ValueError(
            described(
                f"cluster_spec_or_resolver must be a ClusterSpec or a ClusterResolver, but got {shortened(asked)}.",
                fix="pass tf.distribute.cluster_resolver.TPUClusterResolver().",
            )
        )
    if spec.jobs:
        raise UnimplementedError(
            f"A program does not run on the machines of a cluster from one of them, but got {spec}.",
            fix="start it on each machine, with tf.distribute.MultiWorkerMirroredStrategy().",
        )


def _checked(resolver: object) -> TPUClusterResolver:
    """Return a resolver, a new one for None. It has found TPUs: its constructor raises if there are none."""
    if resolver is None:
        return TPUClusterResolver()
    if isinstance(resolver, TPUClusterResolver):
        return resolver
    raise TypeError(
        described(
            f"tpu_cluster_resolver must be a TPUClusterResolver, but got {shortened(resolver)}.",
            fix="pass tf.distribute.cluster_resolver.TPUClusterResolver().",
        )
    )


def _check_one_host() -> None:
    hosts: int = jax.process_count()
    if hosts > 1:
        raise UnimplementedError(
            f"TPUStrategy uses the TPUs of one host, but {hosts} are connected.",
            fix="use dataset.distribute(sharding) or tf.distribute.MeshStrategy(mesh) on the TPUs of all hosts.",
        )
