"""Branches, loops, scopes and checks."""
