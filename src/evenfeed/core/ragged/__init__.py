"""Ragged tensors: rows of different lengths, stored as values and row splits."""
