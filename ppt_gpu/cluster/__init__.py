"""GPUs, hosts and networks."""
