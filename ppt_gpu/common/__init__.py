"""Errors, files, units, threads, compiled loops."""
