"""Compiled loops over images and boxes. Importing a module here imports Numba."""
