"""Cluster resolvers: who takes part, from TF_CONFIG, Slurm, Kubernetes or MPI."""
