"""One streaming multiprocessor, event by event: `simulate` runs a `Program`; README.md says what happens when."""
