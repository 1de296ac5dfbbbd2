"""The fastest chip."""
