"""Hit rates."""
