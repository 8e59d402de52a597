"""The tensor functions that TensorFlow programs use around the input, as aliases onto jax.numpy."""
