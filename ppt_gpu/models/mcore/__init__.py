"""Blem's M-core."""
