"""Mathematics on tensors, a file for each family."""
