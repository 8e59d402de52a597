"""Says once that a MirroredStrategy does not connect the workers that TF_CONFIG describes."""

from typing import Final, final

from evenfeed.cluster.jax_private import joined_runtime
from evenfeed.cluster.membership import membership_of
from evenfeed.cluster.resolvers.tf_config import TFConfigClusterResolver
from evenfeed.core.lazy import logging


@final
class LoneWorkerNotice:
    """Logs that each worker of a cluster trains on its own, unless the program has connected them."""

    def __init__(self) -> None:
        self._was_logged = False

    def __call__(self) -> None:
        """Log it once if TF_CONFIG has several workers, and this process is one of them."""
        if self._was_logged:
            return
        try:
            membership = membership_of(TFConfigClusterResolver())
        except (ValueError, TypeError):  # no concern of a strategy that does not read it
            return
        if membership.worker_count == 1 or joined_runtime() is not None:
            return
        self._was_logged = True
        logging.getLogger("evenfeed").warning(
            "This process is worker %d of %d in TF_CONFIG, but MirroredStrategy trains on this worker alone, on all "
            "rows. Use tf.distribute.MultiWorkerMirroredStrategy() to train together.",
            membership.place,
            membership.worker_count,
        )


say_once_if_apart: Final = LoneWorkerNotice()
