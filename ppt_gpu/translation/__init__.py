"""Traces become task lists."""
