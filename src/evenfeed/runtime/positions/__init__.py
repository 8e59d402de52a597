"""Rows by position: the part of a plan that runs as integer arithmetic and one gather."""
