"""Ways to a kernel other than a PTX file: CUDA C++, numba-cuda, Triton, NumPy arrays from Python; and ptxas."""
