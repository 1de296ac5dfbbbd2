"""Cores, suites, values."""
