"""Names of TensorFlow that evenfeed does not have."""
