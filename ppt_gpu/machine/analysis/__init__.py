"""Regions, loops, values."""
