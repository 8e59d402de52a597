"""Variables: plain, mirrored, and those that are synchronised when read."""
