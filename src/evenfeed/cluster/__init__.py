"""Who takes part: the tasks of a cluster, which of them this process is, and what its machine computes on."""
