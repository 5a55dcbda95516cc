// A program that times itself, as a case of command_case: prints the time of each of 20 copies of 256 MiB.
#include <cstdio>
#include <cuda_runtime.h>

int main() {
    const size_t bytes = size_t{1} << 28;
    void *from = nullptr, *to = nullptr;
    cudaEvent_t begin, end;
    if (cudaMalloc(&from, bytes) != cudaSuccess || cudaMalloc(&to, bytes) != cudaSuccess ||
        cudaEventCreate(&begin) != cudaSuccess || cudaEventCreate(&end) != cudaSuccess) {
        return 1;
    }
    for (int round = 0; round < 25; ++round) {
        float elapsed_ms = 0.0f;
        cudaEventRecord(begin);
        cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToDevice);
        cudaEventRecord(end);
        if (cudaEventSynchronize(end) != cudaSuccess || cudaEventElapsedTime(&elapsed_ms, begin, end) != cudaSuccess) {
            return 1;
        }
        if (round >= 5) {
            std::printf("%.3f us\n", elapsed_ms * 1000.0f);
        }
    }
    return 0;
}
