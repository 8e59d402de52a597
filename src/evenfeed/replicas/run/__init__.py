"""`Strategy.run`: replicas in threads, as one SPMD program, or as separate programs for uneven parts."""
