"""Reduce and gather over replicas."""
