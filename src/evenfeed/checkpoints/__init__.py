"""Checkpoints: the objects that they save, how they are stored, and saving before preemption."""
