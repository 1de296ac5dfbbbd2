"""Compiled code for PTX."""
