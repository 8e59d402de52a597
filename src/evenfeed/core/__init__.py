"""Vocabulary of all layers: errors, dtypes, shapes, specs, structures. Importing it does not load JAX."""
