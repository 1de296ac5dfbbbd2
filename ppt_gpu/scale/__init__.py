"""From one SM to the application."""
