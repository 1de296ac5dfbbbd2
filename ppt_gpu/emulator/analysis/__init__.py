"""What is known of a kernel before it runs."""
