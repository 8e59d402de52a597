"""Inner datasets of flat_map and interleave: opened one by one, or the datasets of many elements read at once."""
