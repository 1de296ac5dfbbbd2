"""Roofline, Little's law, least latency."""
