"""Disassembled kernels."""
