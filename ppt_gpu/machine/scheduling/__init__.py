"""List scheduling under register pressure."""
