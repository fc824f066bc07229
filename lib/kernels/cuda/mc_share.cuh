/* cuda/mc_share.cuh - words of marching cubes shared out among the lanes of a warp. */
#ifndef KERNELS_CUDA_MC_SHARE_CUH
#define KERNELS_CUDA_MC_SHARE_CUH

#include "mc_surface.cuh"

namespace {

enum { GROUP = 8 }; /* words of the list that a warp takes: about as many vertices as it has lanes */
#define LISTED 0x80000000u /* of a word's count: vertices of a block of 128 words are at most 128 * 128, faces 128 * 384 */

/* A warp takes up to 32 words, a lane each, and shares out what is in them, `count` in a lane's, in order: piece t is the
 * nth of the word of lane `owner`. The words' own lanes have `before` pieces before theirs. */
struct share {
    uint32_t before, all;
};
__device__ uint32_t sum_before(uint32_t v, uint32_t lane)
{
    uint32_t sum = v;

    for (uint32_t d = 1; d < 32; d *= 2) {
        uint32_t below = __shfl_up_sync(ALL_LANES, sum, d);

        sum += lane >= d ? below : 0;
    }
    return sum - v;
}
__device__ share share_of(uint32_t count, uint32_t lane)
{
    share s;

    s.before = sum_before(count, lane);
    s.all = __shfl_sync(ALL_LANES, s.before + count, 31);
    return s;
}
/* The last lane whose pieces begin at or before t: it has t, as lanes without pieces begin where the next does. */
__device__ uint32_t owner_of(const share &s, uint32_t t, uint32_t *ret_nth)
{
    uint32_t lane = 0;

    for (uint32_t step = 16; step; step /= 2)
        lane += __shfl_sync(ALL_LANES, s.before, lane + step) <= t ? step : 0;
    *ret_nth = t - __shfl_sync(ALL_LANES, s.before, lane);
    return lane;
}
/* Place of the nth bit that is set, from 0. */
__device__ uint32_t nth_bit(uint32_t word, uint32_t nth)
{
    uint32_t at = 0;

    for (uint32_t step = 16; step; step /= 2) {
        uint32_t low = (uint32_t)__popc(word >> at & ((1u << step) - 1));

        if (low <= nth) {
            nth -= low;
            at += step;
        }
    }
    return at;
}

/* The sample and axis of the nth vertex of a word. */
__device__ int nth_owned(const uint4 &o, uint32_t nth, uint32_t *ret_bit)
{
    uint32_t bit = 0;

    for (uint32_t step = 16; step; step /= 2)
        bit += rank_of(o, bit + step, 0) <= nth ? step : 0;
    nth -= rank_of(o, bit, 0);
    *ret_bit = bit;
    for (int axis = 0; axis < 3; axis++)
        if (((axis == 0 ? o.x : axis == 1 ? o.y : o.z) >> bit & 1) && nth-- == 0)
            return axis;
    return 3;
}

} // namespace

#endif
