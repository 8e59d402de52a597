"""Threads and waits that end: with the program, by Ctrl-C, or when a peer is lost."""
