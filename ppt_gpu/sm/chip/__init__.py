"""The compiled loop of all SMs."""
