"""The analytical models."""
