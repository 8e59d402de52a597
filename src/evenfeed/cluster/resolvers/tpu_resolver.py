"""The TPUs of this machine, as a resolver. A program that looks for TPUs learns here that there are none."""

from evenfeed.cluster.hardware import accelerators_in_use
from evenfeed.cluster.resolvers.resolver import ClusterResolver
from evenfeed.cluster.resolvers.spec import ClusterSpec
from evenfeed.core.errors import described


class TPUClusterResolver(ClusterResolver):
    """Finds the TPUs of this machine. JAX programs run on the machine that has them, so nothing is connected.

    Args:
        tpu: Accepted for compatibility, as all other arguments are: there is one group of TPUs, this machine's.
        zone: Has no effect.
        project: Has no effect.
        job_name: The `task_type`.
        coordinator_name: Has no effect.
        coordinator_address: Has no effect.
        credentials: Has no effect.
        service: Has no effect.
        discovery_url: Has no effect.

    Raises:
        ValueError: JAX computes on no TPU here. TensorFlow raises the same class, so programs that look for a TPU
            first, and go on without one, do so here too.

    Examples:
        >>> import evenfeed as tf
        >>> try:
        ...     resolver = tf.distribute.cluster_resolver.TPUClusterResolver()
        ...     tf.config.experimental_connect_to_cluster(resolver)
        ...     tf.tpu.experimental.initialize_tpu_system(resolver)
        ...     strategy = tf.distribute.TPUStrategy(resolver)
        ... except ValueError:
        ...     strategy = tf.distribute.get_strategy()
        >>> strategy.num_replicas_in_sync
        1
    """

    def __init__(  # noqa: PLR0913, PLR0917 - TensorFlow's arguments
        self,
        tpu: object = None,
        zone: object = None,
        project: object = None,
        job_name: str = "worker",
        coordinator_name: object = None,
        coordinator_address: object = None,
        credentials: object = "default",
        service: object = None,
        discovery_url: object = None,
    ) -> None:
        del tpu, zone, project, coordinator_name, coordinator_address
        del credentials, service, discovery_url
        if not accelerators_in_use().tpus:
            raise ValueError(
                described(
                    "JAX finds no TPU on this machine.",
                    fix="use tf.distribute.MirroredStrategy(), which runs on GPUs and CPUs too. On a machine with TPUs, "
                    "pip install 'jax[tpu]'.",
                )
            )
        self._task_type, self._task_id = job_name, 0

    @staticmethod
    def connect(
        tpu: object = None, zone: object = None, project: object = None
    ) -> "TPUClusterResolver":
        """Return a resolver. There is nothing to connect.

        Args:
            tpu: Has no effect.
            zone: Has no effect.
            project: Has no effect.
        """
        return TPUClusterResolver(tpu, zone, project)

    def cluster_spec(self) -> ClusterSpec:
        """Return no jobs: this process uses the TPUs of its own machine."""
        return ClusterSpec({})

    def master(
        self,
        task_type: str | None = None,
        task_id: int | None = None,
        rpc_layer: str | None = None,
    ) -> str:
        """Return no address."""
        del task_type, task_id, rpc_layer
        return ""

    def get_master(self) -> str:
        """Return no address."""
        return self.master()

    def get_job_name(self) -> str | None:
        """Return the job of this process."""
        return self.task_type
