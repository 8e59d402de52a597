"""Random numbers as a function of a key and a counter."""
