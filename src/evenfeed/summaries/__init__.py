"""Summaries for TensorBoard: writers, and the values that they write."""
