"""Memory instructions."""
