#!/bin/sh
# Measures this machine's GPU: compiles the kernels with nvcc, runs plan.csv, writes one CSV file.
#   ./run.sh [OUTPUT.csv]
# CUDA_VISIBLE_DEVICES chooses the GPU. Needs an NVIDIA driver and nvcc, from the PATH, $CUDA_HOME or /usr/local/cuda.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
samples=$here/../../tasklists
missing() {
    echo "run.sh: $1" >&2
    exit 2
}
output=${1:-capture_$(date -u +%Y%m%d_%H%M).csv}
for input in "$here"/* "$samples"/*.cu; do
    [ ! "$output" -ef "$input" ] || missing "$output is a file of the kit: name another one"
done

nvcc=
for candidate in "$(command -v nvcc || true)" "${CUDA_HOME:-/usr/local/cuda}/bin/nvcc"; do
    if [ -z "$nvcc" ] && [ -n "$candidate" ] && [ -x "$candidate" ]; then nvcc=$candidate; fi
done
[ -n "$nvcc" ] || missing "no nvcc: install the CUDA toolkit (11.3 or later), or set CUDA_HOME to where it is"
[ -d "$samples" ] || missing "no folder tasklists beside validation: run this from a checkout of ppt_gpu"

build=$(mktemp -d "${TMPDIR:-/tmp}/ppt_gpu_capture.XXXXXX")
trap 'rm -rf "$build"' EXIT
# the program itself has one small kernel: its PTX is compiled for the GPU by the driver
"$nvcc" -std=c++17 -O2 "$here/capture.cu" -o "$build/capture" -ldl || missing "$nvcc cannot compile capture.cu"
arch=$("$build/capture" --arch) || exit 2
number=${arch#sm_}

for source in "$here"/micro.cu "$here"/apps.cu "$here"/tensor.cu "$samples"/*.cu; do
    name=$(basename "$source" .cu)
    case $name in
    tensor | hgemm) [ "$number" -ge 80 ] || continue ;;
    esac
    "$nvcc" -cubin -arch="$arch" "$source" -o "$build/$name.cubin" ||
        missing "$nvcc cannot compile $name.cu for $arch: the toolkit may be too old for this GPU, or too new"
done

CAPTURE_DRIVER=$(nvidia-smi --query-gpu=driver_version --format=csv,noheader -i 0 2>/dev/null || echo unknown)
export CAPTURE_DRIVER
status=0
"$build/capture" "$here/plan.csv" "$build" "$output" || status=$?
[ "$status" -eq 2 ] || echo "run.sh: wrote $output" >&2
exit "$status"
