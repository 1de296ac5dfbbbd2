"""Chips of CPU-like (S) and GPU-like (M) cores."""
