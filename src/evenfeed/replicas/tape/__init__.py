"""`tf.GradientTape`: records what is computed, and differentiates it."""
