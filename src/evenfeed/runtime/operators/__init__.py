"""The operators: one file for each family of nodes in `plan/`."""
