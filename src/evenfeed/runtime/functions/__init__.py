"""User functions: traced, checked, compiled, and called on Blocks or on single elements."""
