"""`tf.function`: tracing, program caches, and what a trace must not leave behind."""
