// One sweep of Jacobi's method for Laplace's equation on an n x n grid: every inner point becomes the mean of its four
// neighbours. The edges keep their values.
extern "C" __global__ void jacobi(const float *old, float *fresh, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= n || y >= n) return;
    int at = y * n + x;
    if (x == 0 || y == 0 || x == n - 1 || y == n - 1)
        fresh[at] = old[at];
    else
        fresh[at] = 0.25f * (old[at - 1] + old[at + 1] + old[at - n] + old[at + n]);
}
