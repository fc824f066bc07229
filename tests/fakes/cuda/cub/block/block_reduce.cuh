/* fake: the sum is given to thread 0 only, as by the real one */
#ifndef FAKE_BLOCK_REDUCE
#define FAKE_BLOCK_REDUCE
namespace cub {
template <typename T, int N> struct BlockReduce {
    struct TempStorage {
        T v[N];
    } &s;
    BlockReduce(TempStorage &t) : s(t) {}
    T Sum(T x)
    {
        T sum = 0;

        s.v[threadIdx.x] = x;
        fake_barrier();
        for (int i = 0; i < N; i++)
            sum += s.v[i];
        fake_barrier();
        return threadIdx.x == 0 ? sum : (T)0x5a5a5a5a;
    }
};
} // namespace cub
#endif
