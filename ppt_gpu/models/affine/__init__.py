"""Addresses known without a run."""
