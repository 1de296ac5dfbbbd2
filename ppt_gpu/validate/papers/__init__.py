"""Papers redone."""
