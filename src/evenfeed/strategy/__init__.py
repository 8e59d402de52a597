"""Distribution strategies, and the devices that their replicas run on."""
