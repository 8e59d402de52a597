"""Simple traced functions as NumPy calls."""
