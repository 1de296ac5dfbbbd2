"""The same SM in plain Python."""
