"""One streaming multiprocessor, event by event. `simulate` runs a `Program`; README.md beside says what happens when."""
