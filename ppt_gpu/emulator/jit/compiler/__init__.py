"""A kernel, compiled."""
