"""Device memory, and the memory that compiled code works on."""
