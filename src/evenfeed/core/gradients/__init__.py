"""Values that an open tape follows."""
