"""The `evenfeed` command: a file for each of its commands."""
