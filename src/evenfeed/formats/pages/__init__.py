"""evenfeed's own page files, for saved datasets, snapshots and caches."""
