"""Rows of predictions beside references, and tables that hold measurements."""
