"""Functions of sparse tensors, which are values of the host."""
