"""MWP-CWP."""
