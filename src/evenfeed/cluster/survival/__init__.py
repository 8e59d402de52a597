"""Detects lost workers, and keeps the connection to the coordination service."""
