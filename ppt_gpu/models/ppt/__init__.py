"""The PPT GPU module."""
