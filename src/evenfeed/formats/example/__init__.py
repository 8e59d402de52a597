"""`tf.train.Example` messages: features, parsing, and compiled loops over many of them."""
