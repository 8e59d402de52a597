"""Variables: plain, mirrored, and synchronized on read."""
