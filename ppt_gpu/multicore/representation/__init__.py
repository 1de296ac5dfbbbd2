"""What a program does, for any core."""
