"""PTX becomes machine code."""
