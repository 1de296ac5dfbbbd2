"""GATSim."""
