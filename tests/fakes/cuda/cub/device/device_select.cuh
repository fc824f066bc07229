/* fake */
#ifndef FAKE_DEVICE_SELECT
#define FAKE_DEVICE_SELECT
namespace cub {
struct DeviceSelect {
    template <typename T, typename N> static cudaError_t Unique(void *room, size_t &size, const T *in, T *out, N *kept, uint64_t n, cudaStream_t)
    {
        fake_device device;
        N k = 0;

        size = room ? size : 64;
        for (uint64_t i = 0; room && i < n; i++)
            if (i == 0 || in[i] != in[i - 1])
                out[k++] = in[i];
        if (room)
            *kept = k;
        return cudaSuccess;
    }
    template <typename T, typename F, typename N>
    static cudaError_t Flagged(void *room, size_t &size, const T *in, const F *flag, T *out, N *kept, uint64_t n, cudaStream_t)
    {
        fake_device device;
        N k = 0;

        size = room ? size : 64;
        for (uint64_t i = 0; room && i < n; i++)
            if (flag[i])
                out[k++] = in[i];
        if (room)
            *kept = k;
        return cudaSuccess;
    }
};
} // namespace cub
#endif
