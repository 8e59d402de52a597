"""`Strategy.run`: eager replicas in threads, one SPMD program, and programs for uneven parts."""
