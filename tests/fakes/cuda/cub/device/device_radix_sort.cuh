/* fake: by the bits from first to last - 1, stable */
#ifndef FAKE_DEVICE_RADIX_SORT
#define FAKE_DEVICE_RADIX_SORT
#include <algorithm>
#include <numeric>
#include <vector>
namespace cub {
template <typename T> struct DoubleBuffer {
    T *d_buffers[2];
    int selector;
    T *Current() { return d_buffers[selector]; }
    T *Alternate() { return d_buffers[selector ^ 1]; }
};
struct DeviceRadixSort {
    template <typename K, typename V>
    static cudaError_t SortPairs(void *room, size_t &size, const K *in, K *out, const V *values, V *to, uint64_t n, int first, int last, cudaStream_t)
    {
        fake_device device;
        K mask = last >= (int)(8 * sizeof(K)) ? ~(K)0 : ((K)1 << last) - 1;
        std::vector<uint64_t> order(room ? n : 0);

        size = room ? size : 64;
        std::iota(order.begin(), order.end(), 0);
        std::stable_sort(order.begin(), order.end(), [=](uint64_t a, uint64_t b) { return (in[a] & mask) >> first < (in[b] & mask) >> first; });
        for (uint64_t i = 0; i < order.size(); i++) {
            out[i] = in[order[i]];
            to[i] = values[order[i]];
        }
        return cudaSuccess;
    }
    /* What is left behind is not what came: the real one goes between both. */
    template <typename K, typename V>
    static cudaError_t SortPairs(void *room, size_t &size, DoubleBuffer<K> &key, DoubleBuffer<V> &value, uint64_t n, int first, int last, cudaStream_t queue)
    {
        fake_device device;
        cudaError_t e = SortPairs(room, size, key.Current(), key.Alternate(), value.Current(), value.Alternate(), n, first, last, queue);

        if (room) {
            memset(key.Current(), 0x5a, n * sizeof(K));
            memset(value.Current(), 0x5a, n * sizeof(V));
            key.selector ^= 1;
            value.selector ^= 1;
        }
        return e;
    }
    template <typename K> static cudaError_t SortKeys(void *room, size_t &size, const K *in, K *out, uint64_t n, int first, int last, cudaStream_t queue)
    {
        fake_device device;
        std::vector<uint8_t> none(room ? n : 0);

        return SortPairs(room, size, in, out, none.data(), none.data(), n, first, last, queue);
    }
};
} // namespace cub
#endif
