"""Reductions and gathers over replicas."""
