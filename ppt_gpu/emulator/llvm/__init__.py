"""The text of compiled code."""
