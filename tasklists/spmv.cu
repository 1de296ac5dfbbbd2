// y = A x with a sparse matrix in CSR form, one row a thread: rows of different lengths, scattered reads of x.
// The first launch makes the matrix's row starts: 12 elements a row on average, 5 to 19.
extern "C" __global__ void row_starts(int *start, int rows)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row <= rows)
        start[row] = row * 12 + (row == rows ? 0 : (row * 2654435761u) >> 29);
}

extern "C" __global__ void spmv(const int *start, const int *column, const float *value, const float *x, float *y, int rows)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows)
        return;
    float sum = 0.0f;
    int end = start[row + 1];
    for (int k = start[row]; k < end; k++)
        sum += value[k] * x[column[k]];
    y[row] = sum;
}
