// A blur of three rows of a single-precision image; the edges repeat. One thread a pixel, coalesced along the rows.
//
// Bytes: width x height x 4 read and as many written, since the neighbouring rows come from the cache.
extern "C" __global__ void blur(const float* __restrict__ in, float* __restrict__ out, unsigned width, unsigned height) {
    const unsigned x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y;
    if (x >= width) {
        return;
    }
    const unsigned above = y > 0 ? y - 1 : 0, below = y + 1 < height ? y + 1 : height - 1;
    const size_t row = (size_t)y * width + x;
    out[row] = (in[(size_t)above * width + x] + in[row] + in[(size_t)below * width + x]) * (1.0f / 3.0f);
}
