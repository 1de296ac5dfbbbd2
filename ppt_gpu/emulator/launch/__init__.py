"""The layout of a launch, and launches in order."""
