"""The analytical models, one folder for each author's."""
