"""What an SM runs, and what it yields."""
