// The Mandelbrot set: threads of a warp leave their loop at different times, and nothing but arithmetic happens in it.
extern "C" __global__ void mandelbrot(int *steps, int width, int height, int most)
{
    int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
    if (column >= width || row >= height)
        return;
    float a = -2.0f + 3.0f * column / width, b = -1.2f + 2.4f * row / height;
    float x = 0.0f, y = 0.0f;
    int n = 0;
    while (n < most && x * x + y * y <= 4.0f) {
        float next = x * x - y * y + a;
        y = 2.0f * x * y + b;
        x = next;
        n++;
    }
    steps[row * width + column] = n;
}
