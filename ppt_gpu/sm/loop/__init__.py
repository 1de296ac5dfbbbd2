"""The compiled loop of one SM."""
