"""The levels of fidelity."""
