"""Addresses to transactions."""
