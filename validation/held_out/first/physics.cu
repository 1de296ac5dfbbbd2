// Physics and finance: fluxes of a flow, option prices, random walks with counters, double-precision functions.

__device__ float pressure_of(float density, float energy, float speed2) { return 0.4f * (energy - 0.5f * density * speed2); }

extern "C" __global__ void cfd_flux(int count, const int* neighbours, const float* normals, const float* variables, float* fluxes) {
    int i = blockDim.x * blockIdx.x + threadIdx.x;
    float density = variables[i], mx = variables[i + count], my = variables[i + 2 * count], mz = variables[i + 3 * count];
    float energy = variables[i + 4 * count];
    float vx = mx / density, vy = my / density, vz = mz / density, speed2 = vx * vx + vy * vy + vz * vz;
    float pressure = pressure_of(density, energy, speed2), sound = sqrtf(1.4f * pressure / density);
    float fd = 0.0f, fe = 0.0f, fx = 0.0f, fy = 0.0f, fz = 0.0f;
#pragma unroll
    for (int j = 0; j < 4; j++) {
        int other = neighbours[i + j * count];
        float nx = normals[i + (j + 0 * 4) * count], ny = normals[i + (j + 1 * 4) * count], nz = normals[i + (j + 2 * 4) * count];
        float length = sqrtf(nx * nx + ny * ny + nz * nz);
        if (other >= 0) {
            float d = variables[other], x = variables[other + count], y = variables[other + 2 * count];
            float z = variables[other + 3 * count], e = variables[other + 4 * count];
            float ux = x / d, uy = y / d, uz = z / d, s2 = ux * ux + uy * uy + uz * uz, p = pressure_of(d, e, s2);
            float factor = -length * 0.2f * 0.5f * (sqrtf(speed2) + sqrtf(s2) + sound + sqrtf(1.4f * p / d));
            fd += factor * (density - d) + 0.5f * (nx * (mx + x) + ny * (my + y) + nz * (mz + z));
            fe += factor * (energy - e) + 0.5f * (nx * vx + ny * vy + nz * vz) * (energy + pressure + e + p);
            fx += factor * (mx - x) + 0.5f * nx * (pressure + p);
            fy += factor * (my - y) + 0.5f * ny * (pressure + p);
            fz += factor * (mz - z) + 0.5f * nz * (pressure + p);
        } else if (other == -1) {
            fx += nx * pressure;
            fy += ny * pressure;
            fz += nz * pressure;
        }
    }
    fluxes[i] = fd;
    fluxes[i + count] = fx;
    fluxes[i + 2 * count] = fy;
    fluxes[i + 3 * count] = fz;
    fluxes[i + 4 * count] = fe;
}

__device__ float normal_share(float d) {
    float k = 1.0f / (1.0f + 0.2316419f * fabsf(d));
    float tail = 0.39894228f * expf(-0.5f * d * d) *
                 (k * (0.31938153f + k * (-0.356563782f + k * (1.781477937f + k * (-1.821255978f + k * 1.330274429f)))));
    return d > 0 ? 1.0f - tail : tail;
}

extern "C" __global__ void option_prices(float* call, float* put, const float* price, const float* strike, const float* years,
                              float rate, float volatility, int n) {
    int i = blockDim.x * blockIdx.x + threadIdx.x;
    if (i >= n) return;
    float root = sqrtf(years[i]), d1 = (logf(price[i] / strike[i]) + (rate + 0.5f * volatility * volatility) * years[i]) / (volatility * root);
    float n1 = normal_share(d1), n2 = normal_share(d1 - volatility * root), discounted = strike[i] * expf(-rate * years[i]);
    call[i] = price[i] * n1 - discounted * n2;
    put[i] = discounted * (1.0f - n2) - price[i] * (1.0f - n1);
}

__device__ uint4 philox(uint4 counter, uint2 key) {
#pragma unroll
    for (int round = 0; round < 10; round++) {
        unsigned h0 = __umulhi(0xD2511F53u, counter.x), l0 = 0xD2511F53u * counter.x;
        unsigned h1 = __umulhi(0xCD9E8D57u, counter.z), l1 = 0xCD9E8D57u * counter.z;
        counter = make_uint4(h1 ^ counter.y ^ key.x, l1, h0 ^ counter.w ^ key.y, l0);
        key.x += 0x9E3779B9u;
        key.y += 0xBB67AE85u;
    }
    return counter;
}

extern "C" __global__ void random_pi(unsigned long long* hits, unsigned seed, int many) {
    unsigned id = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned inside = 0;
    for (int i = 0; i < many; i++) {
        uint4 r = philox(make_uint4(i, 0u, id, 0u), make_uint2(seed, 0u));
        float x = r.x * 2.3283064e-10f, y = r.y * 2.3283064e-10f, z = r.z * 2.3283064e-10f, w = r.w * 2.3283064e-10f;
        inside += (x * x + y * y < 1.0f) + (z * z + w * w < 1.0f);
    }
    atomicAdd(hits, (unsigned long long)inside);
}

extern "C" __global__ void double_functions(const double* x, double* y, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = exp(-x[i]) * log(1.0 + x[i] * x[i]) + 1.0 / sqrt(x[i] + 2.0);
}
