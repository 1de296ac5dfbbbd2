"""Many predictions."""
