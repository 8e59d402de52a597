"""`tf.function`: tracing, the cache of programs, and checks that a trace loses nothing."""
