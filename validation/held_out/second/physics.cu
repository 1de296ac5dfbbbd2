// Physics: particles within a distance, a Fourier transform of eight points, random numbers, double-precision angles.

struct Particle { float x, y, z, charge; };

extern "C" __global__ void near_forces(const Particle* particles, const int* boxes, const int* neighbours, float4* forces, int near, float a2) {
    __shared__ Particle own[100];
    __shared__ Particle others[100];
    int box = blockIdx.x, thread = threadIdx.x;
    for (int i = thread; i < 100; i += 128) own[i] = particles[boxes[box] + i];
    for (int k = 0; k < near; k++) {
        int other = boxes[neighbours[box * near + k]];
        __syncthreads();
        for (int i = thread; i < 100; i += 128) others[i] = particles[other + i];
        __syncthreads();
        for (int i = thread; i < 100; i += 128) {
            float4 force = forces[boxes[box] + i];
            for (int j = 0; j < 100; j++) {
                float dx = own[i].x - others[j].x, dy = own[i].y - others[j].y, dz = own[i].z - others[j].z;
                float r2 = dx * dx + dy * dy + dz * dz, u2 = a2 * r2;
                if (u2 > 8.0f) continue;
                float vij = expf(-u2), fs = 2.0f * vij * others[j].charge;
                force.w += others[j].charge * vij;
                force.x += fs * dx;
                force.y += fs * dy;
                force.z += fs * dz;
            }
            forces[boxes[box] + i] = force;
        }
    }
}

__device__ float2 operator+(float2 a, float2 b) { return make_float2(a.x + b.x, a.y + b.y); }
__device__ float2 operator-(float2 a, float2 b) { return make_float2(a.x - b.x, a.y - b.y); }
__device__ float2 operator*(float2 a, float2 b) { return make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }

extern "C" __global__ void fft8(float2* data, int count, int stride) {
    int id = blockIdx.x * blockDim.x + threadIdx.x;
    if (id >= count) return;
    float2 v[8];
#pragma unroll
    for (int i = 0; i < 8; i++) v[i] = data[id + i * stride];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        float2 a = v[i] + v[i + 4], b = v[i] - v[i + 4];
        v[i] = a;
        v[i + 4] = i == 0 ? b : i == 1 ? b * make_float2(0.70710678f, -0.70710678f) : i == 2 ? make_float2(b.y, -b.x) : b * make_float2(-0.70710678f, -0.70710678f);
    }
#pragma unroll
    for (int h = 0; h < 8; h += 4) {
        float2 a = v[h] + v[h + 2], b = v[h] - v[h + 2], c = v[h + 1] + v[h + 3], d = v[h + 1] - v[h + 3];
        d = make_float2(d.y, -d.x);
        v[h] = a + c; v[h + 1] = a - c; v[h + 2] = b + d; v[h + 3] = b - d;
    }
    float angle = -6.2831853f * (id % stride) / (8.0f * stride);
    int order[8] = {0, 4, 2, 6, 1, 5, 3, 7};
#pragma unroll
    for (int i = 0; i < 8; i++) {
        float s, c;
        __sincosf(angle * i, &s, &c);
        data[id * 8 + order[i]] = v[i] * make_float2(c, s);
    }
}

struct Xorwow { unsigned d, v[5]; };

extern "C" __global__ void xorwow_paths(Xorwow* states, float* values, int steps, float start, float drift, float deviation) {
    int id = blockIdx.x * blockDim.x + threadIdx.x;
    Xorwow s = states[id];
    float price = start;
    for (int i = 0; i < steps; i++) {
        float u[2];
#pragma unroll
        for (int k = 0; k < 2; k++) {
            unsigned t = s.v[0] ^ (s.v[0] >> 2);
            s.v[0] = s.v[1]; s.v[1] = s.v[2]; s.v[2] = s.v[3]; s.v[3] = s.v[4];
            s.v[4] = s.v[4] ^ (s.v[4] << 4) ^ t ^ (t << 1);
            s.d += 362437;
            u[k] = (s.d + s.v[4]) * 2.3283064e-10f + 1.1641532e-10f;
        }
        float normal = sqrtf(-2.0f * __logf(u[0])) * __cosf(6.2831853f * u[1]);
        price *= __expf(drift + deviation * normal);
    }
    values[id] = price;
    states[id] = s;
}

extern "C" __global__ void rotate_points(const double* angle, const double2* in, double2* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    double s, c;
    sincos(angle[i], &s, &c);
    double2 p = in[i];
    out[i] = make_double2(p.x * c - p.y * s, p.x * s + p.y * c);
}
