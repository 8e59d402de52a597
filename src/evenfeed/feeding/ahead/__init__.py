"""Steps that are read and copied to the devices ahead of the training step: one by one, or several together."""
