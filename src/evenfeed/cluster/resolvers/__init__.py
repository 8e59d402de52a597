"""Cluster resolvers: find the tasks of the cluster in TF_CONFIG, Slurm, Kubernetes or MPI."""
