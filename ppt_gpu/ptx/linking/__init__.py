"""A kernel with the functions that it calls; names of C++; liveness."""
