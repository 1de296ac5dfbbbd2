"""Calibration: numbers of a hardware file that public documents do not give, from times of micro-benchmarks."""
