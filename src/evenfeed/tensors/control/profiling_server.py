"""A server of profiles: TensorFlow's `tf.profiler.experimental.server`."""

from evenfeed.core.lazy_jax import jax


def start(port: int) -> None:
    """Let TensorBoard record profiles of this program over the network.

    Args:
        port: The port to listen on.
    """
    jax.profiler.start_server(port)
