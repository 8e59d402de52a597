"""Sparse tensors: the nonempty values of an array, with their indices."""
