/* fake */
#ifndef FAKE_BLOCK_SCAN
#define FAKE_BLOCK_SCAN
namespace cub {
template <typename T, int N> struct BlockScan {
    struct TempStorage {
        T v[N];
    } &s;
    BlockScan(TempStorage &t) : s(t) {}
    void ExclusiveSum(T x, T &ret)
    {
        T sum = 0;

        s.v[threadIdx.x] = x;
        fake_barrier();
        for (unsigned i = 0; i < threadIdx.x; i++)
            sum += s.v[i];
        fake_barrier();
        ret = sum;
    }
};
} // namespace cub
#endif
