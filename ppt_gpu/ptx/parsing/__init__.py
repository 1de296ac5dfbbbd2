"""From text to the module."""
