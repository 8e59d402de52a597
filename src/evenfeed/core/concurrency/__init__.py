"""Threads that end with the program, and waits that end on Ctrl-C or when a worker is lost."""
