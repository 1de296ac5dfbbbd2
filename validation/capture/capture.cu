// Runs the launches of plan.csv on the GPU and writes their times as CSV; run.sh compiles and starts it. README.md says
// what the columns are. Kernels come from cubin files beside it, so that this file knows none of them.
//   capture --arch                       prints the GPU's architecture, such as sm_90
//   capture PLAN CUBIN_FOLDER OUTPUT     runs the plan

#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <fstream>
#include <map>
#include <random>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

typedef std::vector<std::string> Words;

static void fail(const std::string &what)
{
    throw std::runtime_error(what);
}

static void check(cudaError_t status, const char *what)
{
    if (status != cudaSuccess)
        fail(std::string(what) + ": " + cudaGetErrorString(status));
}

// --- the driver's functions for modules, from the library that the driver brings -----------------------------------------

struct Driver {
    CUresult (*load)(CUmodule *, const char *);
    CUresult (*function)(CUfunction *, CUmodule, const char *);
    CUresult (*attribute)(int *, CUfunction_attribute, CUfunction);
    CUresult (*launch)(CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, void **,
                       void **);

    Driver()
    {
        void *library = dlopen("libcuda.so.1", RTLD_NOW);
        if (!library)
            fail("libcuda.so.1 is not there: no NVIDIA driver on this machine");
        find(library, "cuModuleLoad", load);
        find(library, "cuModuleGetFunction", function);
        find(library, "cuFuncGetAttribute", attribute);
        find(library, "cuLaunchKernel", launch);
    }

    template <typename F> static void find(void *library, const char *name, F &function)
    {
        void *found = dlsym(library, name);
        if (!found)
            fail(std::string("the driver has no ") + name);
        memcpy(&function, &found, sizeof found);
    }
};

static void check(CUresult status, const std::string &what)
{
    if (status != CUDA_SUCCESS)
        fail(what + ": driver error " + std::to_string((int)status));
}

// --- the GPU ---------------------------------------------------------------------------------------------------------------

struct Device {
    cudaDeviceProp properties;
    std::map<std::string, long long> words;  // what plan.csv may name: sms, l2words

    Device()
    {
        int count = 0;
        if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0)
            fail("no GPU: cudaGetDeviceCount finds none (driver missing, or older than this CUDA toolkit)");
        check(cudaSetDevice(0), "cudaSetDevice");
        check(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
        long long quarter = 1;
        while (quarter * 2 <= properties.l2CacheSize / 16)  // of 4 B
            quarter *= 2;
        words["sms"] = properties.multiProcessorCount;
        words["l2words"] = quarter;
    }

    int capability() const { return properties.major * 10 + properties.minor; }

    long long attribute(cudaDeviceAttr which) const
    {
        int value = 0;
        return cudaDeviceGetAttribute(&value, which, 0) == cudaSuccess ? value : 0;
    }
};

// Counts cycles until `wanted` ns have passed.
__global__ void count_cycles(long long wanted, long long *out)
{
    long long begin, now, cycles = clock64();
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begin));
    do
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - begin < wanted);
    out[0] = clock64() - cycles;
    out[1] = now - begin;
}

// --- text ------------------------------------------------------------------------------------------------------------------

// Cells of a line of CSV; a cell in quotes may have commas.
static Words cells_of(const std::string &line)
{
    Words cells(1);
    bool quoted = false;
    for (char c : line) {
        if (c == '"')
            quoted = !quoted;
        else if (c == ',' && !quoted)
            cells.push_back("");
        else if (c != '\r')
            cells.back() += c;
    }
    return cells;
}

static Words split(const std::string &text, char separator)
{
    Words parts;
    std::stringstream stream(text);
    std::string part;
    while (std::getline(stream, part, separator))
        parts.push_back(part);
    return parts;
}

static std::string quoted(const std::string &cell)
{
    return cell.find(',') == std::string::npos ? cell : "\"" + cell + "\"";
}

// "2*sms" with the names' values: a product.
static std::string resolved(const std::string &text, const std::map<std::string, long long> &words)
{
    std::string result = text;
    for (const auto &word : words)
        for (size_t at; (at = result.find(word.first)) != std::string::npos;)
            result.replace(at, word.first.size(), std::to_string(word.second));
    return result;
}

static long long product(const std::string &text)
{
    long long value = 1;
    for (const std::string &factor : split(text, '*'))
        value *= std::stoll(factor);
    return value;
}

static dim3 extents(const std::string &text)
{
    unsigned sides[3] = {1, 1, 1};
    Words parts = split(text, 'x');
    for (size_t i = 0; i < parts.size() && i < 3; i++)
        sides[i] = (unsigned)product(parts[i]);
    return dim3(sides[0], sides[1], sides[2]);
}

static std::string shown(dim3 d)
{
    return std::to_string(d.x) + "x" + std::to_string(d.y) + "x" + std::to_string(d.z);
}

// --- arguments -------------------------------------------------------------------------------------------------------------

static size_t bytes_of(const std::string &type)
{
    return std::stoul(type.substr(1)) / 8;
}

static unsigned short half_of(float value)  // in [0, 1), rounded down: enough for test data
{
    unsigned bits;
    memcpy(&bits, &value, 4);
    int exponent = (int)(bits >> 23 & 255) - 112;
    return exponent <= 0 ? 0 : (unsigned short)(exponent << 10 | (bits >> 13 & 1023));
}

template <typename T> static void put(std::vector<char> &raw, size_t i, T value)
{
    memcpy(raw.data() + i * sizeof value, &value, sizeof value);
}

static void put_number(std::vector<char> &raw, size_t i, const std::string &type, double value)
{
    if (type == "f16")
        put(raw, i, half_of((float)value));
    else if (type == "f32")
        put(raw, i, (float)value);
    else if (type == "f64")
        put(raw, i, value);
    else if (bytes_of(type) == 8)
        put(raw, i, (long long)value);
    else if (bytes_of(type) == 4)
        put(raw, i, (unsigned)(long long)value);
    else
        fail("no buffer of " + type + " is filled here");
}

// The arguments of a launch: TYPE=VALUE, or TYPE[COUNT]=INIT with zeros, iota, const:V, random, random(A,B), ring:STRIDE.
struct Arguments {
    std::vector<std::vector<char>> values;
    std::vector<void *> pointers;
    std::vector<void *> buffers;

    explicit Arguments(const std::string &text)
    {
        for (const std::string &one : split(text, ';'))
            add(one);
        for (std::vector<char> &value : values)
            pointers.push_back(value.data());
    }

    Arguments(const Arguments &) = delete;

    ~Arguments()
    {
        for (void *buffer : buffers)
            cudaFree(buffer);
    }

    void add(const std::string &text)
    {
        size_t equals = text.find('='), bracket = text.find('[');
        std::string init = equals == std::string::npos ? "zeros" : text.substr(equals + 1);
        std::vector<char> value(8);
        if (bracket == std::string::npos || bracket > equals) {
            std::string type = text.substr(0, equals);
            put_number(value, 0, type, type[0] == 'f' ? std::stod(init) : (double)product(init));
        } else {
            std::string count = text.substr(bracket + 1, text.find(']') - bracket - 1);
            void *buffer = filled(text.substr(0, bracket), (size_t)product(count), init);
            memcpy(value.data(), &buffer, sizeof buffer);
        }
        values.push_back(value);
    }

    void *filled(const std::string &type, size_t count, const std::string &init)
    {
        void *buffer = nullptr;
        size_t size = count * bytes_of(type);
        check(cudaMalloc(&buffer, size), "cudaMalloc");
        buffers.push_back(buffer);
        if (init == "zeros") {
            check(cudaMemset(buffer, 0, size), "cudaMemset");
            return buffer;
        }
        std::vector<char> raw(size);
        double low = 0.0, high = 1.0;
        sscanf(init.c_str(), "random(%lf,%lf)", &low, &high);
        std::mt19937_64 random(1);
        std::uniform_real_distribution<double> any(low, type[0] == 'f' ? high : high + 1.0);
        for (size_t i = 0; i < count; i++) {
            if (init == "iota")
                put_number(raw, i, type, (double)i);
            else if (init.rfind("const:", 0) == 0)
                put_number(raw, i, type, std::stod(init.substr(6)));
            else if (init.rfind("ring:", 0) == 0)
                put_number(raw, i, type, (double)((i + std::stoull(init.substr(5))) % count));
            else if (init.rfind("random", 0) == 0)
                put_number(raw, i, type, std::min(any(random), type[0] == 'f' ? high : high + 0.5));
            else
                fail("unknown content " + init);
        }
        check(cudaMemcpy(buffer, raw.data(), size, cudaMemcpyHostToDevice), "cudaMemcpy");
        return buffer;
    }
};

// --- measuring -------------------------------------------------------------------------------------------------------------

enum { REPEATS = 11, MOST_LAUNCHES = 500 };

struct Times {
    std::vector<double> us;
    int batch = 1;

    double at(size_t i) const
    {
        std::vector<double> sorted(us);
        std::sort(sorted.begin(), sorted.end());
        return sorted[i];
    }
    double median() const { return at(us.size() / 2); }
    double low() const { return at(us.size() / 10); }                   // one in ten is below
    double high() const { return at(us.size() - 1 - us.size() / 10); }  // and one in ten above
};

struct Timer {
    cudaEvent_t begin, end;
    Timer()
    {
        check(cudaEventCreate(&begin), "cudaEventCreate");
        check(cudaEventCreate(&end), "cudaEventCreate");
    }
    ~Timer()
    {
        cudaEventDestroy(begin);
        cudaEventDestroy(end);
    }
    void start() { check(cudaEventRecord(begin), "cudaEventRecord"); }
    double stop()
    {
        float ms = 0.0f;
        check(cudaEventRecord(end), "cudaEventRecord");
        check(cudaEventSynchronize(end), "the kernel");
        check(cudaEventElapsedTime(&ms, begin, end), "cudaEventElapsedTime");
        return 1e3 * ms;
    }
};

// MHz of the SMs now, from a millisecond of counting.
static double clock_now(long long *scratch)
{
    count_cycles<<<1, 1>>>(1000000, scratch);
    long long counted[2];
    check(cudaMemcpy(counted, scratch, sizeof counted, cudaMemcpyDeviceToHost), "the clock");
    return 1e3 * (double)counted[0] / (double)counted[1];
}

struct Row {
    std::string group, module, kernel, l2, args;
    dim3 grid, block;
};

struct Kit {
    Driver driver;
    Device device;
    std::string folder;
    std::map<std::string, CUmodule> modules;
    Timer timer;
    void *flush = nullptr;  // written between launches that are to find the L2 cold
    size_t flush_bytes;
    long long *scratch = nullptr;

    explicit Kit(const std::string &cubins) : folder(cubins)
    {
        flush_bytes = std::max<size_t>(4 * (size_t)device.properties.l2CacheSize, 64 << 20);
        check(cudaMalloc(&flush, flush_bytes), "cudaMalloc");
        check(cudaMalloc((void **)&scratch, 64), "cudaMalloc");
    }

    CUfunction function(const Row &row)
    {
        if (!modules.count(row.module)) {
            std::string path = folder + "/" + row.module + ".cubin";
            check(driver.load(&modules[row.module], path.c_str()), path);
        }
        CUfunction found;
        check(driver.function(&found, modules[row.module], row.kernel.c_str()), "kernel " + row.kernel);
        return found;
    }

    void launch(CUfunction kernel, const Row &row, Arguments &arguments)
    {
        check(driver.launch(kernel, row.grid.x, row.grid.y, row.grid.z, row.block.x, row.block.y, row.block.z, 0, nullptr,
                            arguments.pointers.data(), nullptr),
              "launch of " + row.kernel);
    }

    Times kernel_times(CUfunction kernel, const Row &row)
    {
        Arguments arguments(row.args);
        Times times;
        for (int i = 0; i < 3; i++)
            launch(kernel, row, arguments);
        check(cudaDeviceSynchronize(), ("kernel " + row.kernel).c_str());
        bool cold = row.l2 == "cold";
        if (!cold) {
            timer.start();
            launch(kernel, row, arguments);
            double one = timer.stop();
            times.batch = (int)std::min<double>(MOST_LAUNCHES, std::max(1.0, 2000.0 / one));
        }
        for (int repeat = 0; repeat < REPEATS; repeat++) {
            if (cold)
                check(cudaMemsetAsync(flush, repeat, flush_bytes), "cudaMemsetAsync");
            timer.start();
            for (int i = 0; i < times.batch; i++)
                launch(kernel, row, arguments);
            times.us.push_back(timer.stop() / times.batch);
        }
        return times;
    }

    // Host rows: `launch` of so many kernels, seen by the host; copies of so many bytes.
    Times host_times(const Row &row)
    {
        Times times;
        size_t count = (size_t)product(row.args.substr(row.args.find('=') + 1));
        if (row.kernel == "launch") {
            Row empty = row;
            empty.module = "micro";
            empty.kernel = "nothing";
            Arguments none("");
            CUfunction kernel = function(empty);
            times.batch = (int)count;
            for (int repeat = 0; repeat < REPEATS; repeat++) {
                check(cudaDeviceSynchronize(), "nothing");
                auto begin = std::chrono::steady_clock::now();
                for (size_t i = 0; i < count; i++)
                    launch(kernel, empty, none);
                check(cudaDeviceSynchronize(), "nothing");
                std::chrono::duration<double, std::micro> passed = std::chrono::steady_clock::now() - begin;
                times.us.push_back(passed.count() / (double)count);
            }
            return times;
        }
        bool pinned = row.kernel.find("pinned") != std::string::npos, in = row.kernel.rfind("copy_in", 0) == 0;
        void *host = nullptr, *far = nullptr;
        std::vector<char> pageable(pinned ? 0 : count, 1);
        if (pinned) {
            check(cudaMallocHost(&host, count), "cudaMallocHost");
            memset(host, 1, count);
        } else {
            host = pageable.data();
        }
        check(cudaMalloc(&far, count), "cudaMalloc");
        for (int repeat = -2; repeat < REPEATS; repeat++) {
            auto begin = std::chrono::steady_clock::now();
            check(cudaMemcpy(in ? far : host, in ? host : far, count, in ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost),
                  "cudaMemcpy");
            check(cudaDeviceSynchronize(), "cudaMemcpy");
            std::chrono::duration<double, std::micro> passed = std::chrono::steady_clock::now() - begin;
            if (repeat >= 0)
                times.us.push_back(passed.count());
        }
        check(cudaFree(far), "cudaFree");
        if (pinned)
            check(cudaFreeHost(host), "cudaFreeHost");
        return times;
    }

    void header(FILE *out)
    {
        const cudaDeviceProp &p = device.properties;
        int driver_version = 0, runtime_version = 0;
        cudaDriverGetVersion(&driver_version);
        cudaRuntimeGetVersion(&runtime_version);
        char date[32];
        std::time_t now = std::time(nullptr);
        std::strftime(date, sizeof date, "%Y-%m-%d %H:%M UTC", std::gmtime(&now));
        const char *kernel_driver = getenv("CAPTURE_DRIVER");  // of nvidia-smi, from run.sh
        fprintf(out, "# capture: 1\n# gpu: %s\n# compute_capability: %d.%d\n# sms: %d\n", p.name, p.major, p.minor,
                p.multiProcessorCount);
        fprintf(out, "# l2_bytes: %d\n# memory_bytes: %zu\n", p.l2CacheSize, p.totalGlobalMem);
        fprintf(out, "# max_clock_mhz: %.0f\n", device.attribute(cudaDevAttrClockRate) / 1e3);
        fprintf(out, "# memory_clock_mhz: %.0f\n# memory_bus_bits: %lld\n",
                device.attribute(cudaDevAttrMemoryClockRate) / 1e3, device.attribute(cudaDevAttrGlobalMemoryBusWidth));
        fprintf(out, "# ecc: %lld\n# driver: %s\n# driver_cuda: %d.%d\n# toolkit: %d.%d\n# date: %s\n",
                device.attribute(cudaDevAttrEccEnabled), kernel_driver ? kernel_driver : "unknown", driver_version / 1000,
                driver_version % 1000 / 10, runtime_version / 1000, runtime_version % 1000 / 10, date);
        fprintf(out, "group,module,kernel,grid,block,l2,args,registers,static_shared,repeats,batch,median_us,low_us,high_us,"
                     "clock_mhz\n");
    }

    void run(const Row &row, FILE *out)
    {
        bool host = row.group == "host";
        CUfunction kernel = nullptr;
        int registers = 0, shared = 0;
        if (!host) {
            kernel = function(row);
            check(driver.attribute(&registers, CU_FUNC_ATTRIBUTE_NUM_REGS, kernel), "registers");
            check(driver.attribute(&shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, kernel), "shared memory");
        }
        double before = clock_now(scratch);
        Times times = host ? host_times(row) : kernel_times(kernel, row);
        double mhz = 0.5 * (before + clock_now(scratch));
        fprintf(out, "%s,%s,%s,%s,%s,%s,%s,%d,%d,%d,%d,%.4f,%.4f,%.4f,%.1f\n", row.group.c_str(), row.module.c_str(),
                row.kernel.c_str(), host ? "" : shown(row.grid).c_str(), host ? "" : shown(row.block).c_str(),
                row.l2.c_str(), quoted(row.args).c_str(), registers, shared, (int)REPEATS, times.batch, times.median(),
                times.low(), times.high(), mhz);
        fflush(out);
    }

    // Columns of the plan: group, module, kernel, needs, grid, block, l2, args. Returns how many rows failed.
    int all(std::ifstream &plan, FILE *out)
    {
        int failed = 0, number = 0;
        header(out);
        for (double end = 0; end < 300;) {  // warm the GPU up
            clock_now(scratch);
            end += 1;
        }
        for (std::string line; std::getline(plan, line);) {
            Words cells = cells_of(line);
            if (number++ == 0 || cells.size() != 8 || cells[0][0] == '#')
                continue;
            if (!cells[3].empty() && std::stoi(cells[3]) > device.capability())
                continue;
            for (std::string &cell : cells)
                if (&cell >= &cells[4])
                    cell = resolved(cell, device.words);
            Row row = {cells[0], cells[1], cells[2], cells[6], cells[7], extents(cells[4]), extents(cells[5])};
            try {
                run(row, out);
                fprintf(stderr, "%s %s\n", row.kernel.c_str(), row.args.c_str());
            } catch (const std::exception &error) {
                failed++;
                fprintf(stderr, "line %d of the plan, %s: %s\n", number, row.kernel.c_str(), error.what());
                if (cudaDeviceSynchronize() != cudaSuccess)
                    fail("the GPU is in error; the rows before are in the file");
            }
        }
        return failed;
    }
};

int main(int count, char **words)
{
    try {
        if (count == 2 && std::string(words[1]) == "--arch") {
            printf("sm_%d\n", Device().capability());
            return 0;
        }
        if (count != 4)
            fail("usage: capture --arch | capture PLAN CUBIN_FOLDER OUTPUT");
        std::ifstream plan(words[1]);
        if (!plan)
            fail(std::string("cannot read ") + words[1]);
        Kit kit(words[2]);
        FILE *out = fopen(words[3], "w");
        if (!out)
            fail(std::string("cannot write ") + words[3]);
        int failed = kit.all(plan, out);
        fclose(out);
        if (failed)
            fprintf(stderr, "%d rows failed\n", failed);
        return failed ? 1 : 0;
    } catch (const std::exception &error) {
        fprintf(stderr, "capture: %s\n", error.what());
        return 2;
    }
}
