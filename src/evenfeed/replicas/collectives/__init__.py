"""Collectives: operations that all replicas perform together. Each has a module of its own."""
