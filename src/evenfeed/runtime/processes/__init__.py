"""Runs user functions in worker processes."""
