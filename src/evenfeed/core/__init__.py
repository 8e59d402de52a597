"""The words that every layer uses: errors, dtypes, shapes, specs, structures. Knows no JAX."""
