"""The tensor functions that TensorFlow programs use around their input, as thin wrappers of jax.numpy."""
