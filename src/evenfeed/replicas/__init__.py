"""Per-replica values, variables, and running functions on replicas."""
