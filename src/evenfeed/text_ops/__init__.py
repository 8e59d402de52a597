"""TensorFlow's functions on text, as kernels on whole columns."""
