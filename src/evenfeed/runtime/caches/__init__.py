"""Stores elements between passes: caches, snapshots and saved datasets."""
