"""Runs plans: operators that pass Blocks to one another on demand."""
