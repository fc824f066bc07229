/* fake */
#ifndef FAKE_DEVICE_SCAN
#define FAKE_DEVICE_SCAN
namespace cub {
struct DeviceScan {
    template <typename T>
    static cudaError_t ExclusiveSum(void *room, size_t &size, const T *in, T *out, uint64_t n, cudaStream_t)
    {
        fake_device device;
        T sum = 0;

        size = room ? size : 64;
        for (uint64_t i = 0; room && i < n; i++) {
            T x = in[i];

            out[i] = sum;
            sum += x;
        }
        return cudaSuccess;
    }
    template <typename T>
    static cudaError_t InclusiveSum(void *room, size_t &size, const T *in, T *out, uint64_t n, cudaStream_t)
    {
        fake_device device;
        T sum = 0;

        size = room ? size : 64;
        for (uint64_t i = 0; room && i < n; i++)
            out[i] = sum += in[i];
        return cudaSuccess;
    }
};
} // namespace cub
#endif
