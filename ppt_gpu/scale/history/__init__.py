"""What earlier launches left."""
