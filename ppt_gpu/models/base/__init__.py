"""What all models read and answer."""
