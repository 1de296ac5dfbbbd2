"""Running blocks."""
