"""File formats: reading files as Blocks, and writing them."""
