"""`tf.train.Example` messages: feature specs, parsing, and compiled loops over many messages."""
