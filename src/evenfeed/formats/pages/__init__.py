"""evenfeed's own files of pages: saved datasets, snapshots and caches."""
