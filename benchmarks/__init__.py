"""What measures how fast the project is, and that a change of structure changes no number."""
