// Clusters, a small machine of instructions, counters, connected parts.

extern "C" __global__ void nearest_center(const float* points, const float* centers, int* member, int count, int clusters, int features) {
    int id = blockIdx.x * blockDim.x + threadIdx.x;
    if (id >= count) return;
    int best = -1;
    float least = 3.4e38f;
    for (int c = 0; c < clusters; c++) {
        float distance = 0.0f;
        for (int f = 0; f < features; f++) {
            float d = points[f * count + id] - centers[c * features + f];
            distance += d * d;
        }
        if (distance < least) { least = distance; best = c; }
    }
    member[id] = best;
}

extern "C" __global__ void interpreter(const int* program, const int* inputs, int* outputs, int length, int n) {
    int id = blockIdx.x * blockDim.x + threadIdx.x;
    if (id >= n) return;
    int a = inputs[id], b = id;
    for (int pc = 0; pc < length; pc++) {
        int word = program[pc];
        switch (word & 7) {
            case 0: a += word >> 3; break;
            case 1: a -= b; break;
            case 2: a *= b | 1; break;
            case 3: b = a ^ (word >> 3); break;
            case 4: a = b > 0 ? a / (b | 1) : a; break;
            case 5: b = __popc(a); break;
            case 6: a = max(a, b); break;
            default: a = inputs[((unsigned)a) % n];
        }
    }
    outputs[id] = a + b;
}

extern "C" __global__ void particle_weights(const float* xs, const float* ys, float* weights, const int* image, const int* mask,
                                 int particles, int ones, int width, int size) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= particles) return;
    float likelihood = 0.0f;
    for (int k = 0; k < ones; k++) {
        int x = (int)rintf(xs[i]) + mask[2 * k + 1], y = (int)rintf(ys[i]) + mask[2 * k], at = abs(y * width + x);
        if (at >= size) at = 0;
        float low = image[at] - 100, high = image[at] - 228;
        likelihood += (low * low - high * high) / 50.0f;
    }
    weights[i] *= expf(likelihood / ones);
}

extern "C" __global__ void hook_parts(const int* from, const int* to, int* parent, int edges, int* changed) {
    int e = blockIdx.x * blockDim.x + threadIdx.x;
    if (e >= edges) return;
    int u = parent[from[e]], v = parent[to[e]];
    while (u != v) {
        int high = max(u, v), low = min(u, v), old = atomicCAS(parent + high, high, low);
        if (old == high || old == low) { *changed = 1; break; }
        u = parent[old];
        v = parent[low];
    }
}
