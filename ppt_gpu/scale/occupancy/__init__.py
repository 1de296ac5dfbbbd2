"""Blocks that an SM holds."""
