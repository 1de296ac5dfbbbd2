"""Blocks whose threads race for shared memory."""
