"""What a kernel asks of the host: printf, the heap."""
