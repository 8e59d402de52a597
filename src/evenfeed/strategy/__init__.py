"""Where the computation runs: devices, replicas, and the values that are spread over them."""
