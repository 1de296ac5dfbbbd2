// Dynamic programming and searches: grids, alignments, breadth-first levels, a tree of keys.

extern "C" __global__ void pathfinder(const int* wall, const int* before, int* after, int columns, int start, int iterations, int border) {
    __shared__ int previous[256];
    __shared__ int result[256];
    int tx = threadIdx.x, width = 256 - 2 * iterations;
    int left = width * blockIdx.x - border, x = left + tx;
    int low = left < 0 ? -left : 0, high = left + 255 > columns - 1 ? 255 - (left + 255 - columns + 1) : 255;
    int west = max(tx - 1, low), east = min(tx + 1, high);
    bool valid = tx >= low && tx <= high, computed = false;
    if (x >= 0 && x < columns) previous[tx] = before[x];
    __syncthreads();
    for (int i = 0; i < iterations; i++) {
        computed = tx >= i + 1 && tx <= 254 - i && valid;
        if (computed) {
            int shortest = min(min(previous[west], previous[tx]), previous[east]);
            result[tx] = shortest + wall[columns * (start + i) + x];
        }
        __syncthreads();
        if (i == iterations - 1) break;
        if (computed) previous[tx] = result[tx];
        __syncthreads();
    }
    if (computed) after[x] = result[tx];
}

extern "C" __global__ void needle(const int* reference, int* table, int columns, int penalty, int diagonal) {
    __shared__ int part[17][17];
    __shared__ int ref[16][16];
    int tx = threadIdx.x, bx = blockIdx.x, by = diagonal - 1 - bx;
    int base = columns * 16 * by + 16 * bx;
    if (tx == 0) part[0][0] = table[base];
    for (int ty = 0; ty < 16; ty++) ref[ty][tx] = reference[base + columns * (ty + 1) + tx + 1];
    part[tx + 1][0] = table[base + columns * (tx + 1)];
    part[0][tx + 1] = table[base + tx + 1];
    __syncthreads();
    for (int m = 0; m < 16; m++) {
        if (tx <= m) {
            int x = tx + 1, y = m - tx + 1;
            part[y][x] = max(part[y - 1][x - 1] + ref[y - 1][x - 1], max(part[y][x - 1] - penalty, part[y - 1][x] - penalty));
        }
        __syncthreads();
    }
    for (int ty = 0; ty < 16; ty++) table[base + columns * (ty + 1) + tx + 1] = part[ty + 1][tx + 1];
}

struct Node { int first, edges; };

extern "C" __global__ void bfs_level(const Node* nodes, const int* edges, char* frontier, char* next, char* visited, int* cost, int count) {
    int id = blockIdx.x * blockDim.x + threadIdx.x;
    if (id >= count || !frontier[id]) return;
    frontier[id] = 0;
    int first = nodes[id].first, last = first + nodes[id].edges;
    for (int e = first; e < last; e++) {
        int other = edges[e];
        if (!visited[other]) {
            cost[other] = cost[id] + 1;
            next[other] = 1;
        }
    }
}

struct Knot { int location, indices[33], keys[33]; bool leaf; int used; };

extern "C" __global__ void tree_search(long height, const Knot* knots, long* current, long* offset, const int* keys, int* answer) {
    int thread = threadIdx.x, query = blockIdx.x;
    for (long level = 0; level < height; level++) {
        const Knot& knot = knots[current[query]];
        if (knot.keys[thread] <= keys[query] && knot.keys[thread + 1] > keys[query]) {
            if (knots[offset[query]].indices[thread] < 100000) offset[query] = knots[offset[query]].indices[thread];
        }
        __syncthreads();
        if (thread == 0) current[query] = offset[query];
        __syncthreads();
    }
    if (knots[current[query]].keys[thread] == keys[query]) answer[query] = knots[current[query]].indices[thread];
}

extern "C" __global__ void lower_bounds(const int* sorted, int count, const int* wanted, int* found, int many) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < many; i += gridDim.x * blockDim.x) {
        int low = 0, high = count, key = wanted[i];
        while (low < high) {
            int middle = low + (high - low) / 2;
            if (sorted[middle] < key) low = middle + 1;
            else high = middle;
        }
        found[i] = low;
    }
}
