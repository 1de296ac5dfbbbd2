"""Systems measured."""
