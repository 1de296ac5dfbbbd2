"""A trace becomes a program."""
