"""The result as data."""
