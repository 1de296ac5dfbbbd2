"""What other SMs and earlier launches leave in the L2."""
