"""Measures the stages of a running plan."""
