"""What the user says is run."""
