"""Models of one core."""
