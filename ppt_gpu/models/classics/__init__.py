"""Roofline, Volkov."""
