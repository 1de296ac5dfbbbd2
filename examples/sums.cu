// Three ways to add up a matrix of floats, for docs/tutorial.md. Made into sums.ptx by: nvcc -ptx -arch=compute_75

// The sum of each row, a thread a row: neighbouring lanes read addresses a whole row apart.
extern "C" __global__ void row_sums(const float *matrix, float *sums, int columns)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int column = 0; column < columns; column++)
        sum += matrix[row * columns + column];
    sums[row] = sum;
}

// The sum of each column, a thread a column: neighbouring lanes read neighbouring addresses.
extern "C" __global__ void column_sums(const float *matrix, float *sums, int rows, int columns)
{
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int row = 0; row < rows; row++)
        sum += matrix[row * columns + column];
    sums[column] = sum;
}

// The same in parts of `rows` rows, one for each blockIdx.y: more threads, more loads in flight.
extern "C" __global__ void part_sums(const float *matrix, float *sums, int rows, int columns)
{
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    const float *part = matrix + (size_t)blockIdx.y * rows * columns;
    float sum = 0;
    for (int row = 0; row < rows; row++)
        sum += part[row * columns + column];
    atomicAdd(sums + column, sum);
}
