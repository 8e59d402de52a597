"""Kernels, and what they do with parts of an element while a user function is traced."""
