"""What a dataset is: frozen nodes that say the spec and the size, and do nothing."""
