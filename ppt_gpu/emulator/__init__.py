"""Functional execution."""
