/* cuda/fuse_feed.cuh - frames on their way to the device: pulled on the host into a ring of pinned memory and uploaded one by one on
 * a queue of their own, while the main queue works on the batch before. Batches take turns in a few places of device memory; where
 * each has a place of its own, all can be gone through again without the source. */
#ifndef KERNELS_CUDA_FUSE_FEED_CUH
#define KERNELS_CUDA_FUSE_FEED_CUH

#include "copier.h"
#include "cuda.cuh"

enum { BATCH = 32, FEED_SLOTS = 8 };

/* One frame of a batch on the device. */
struct cuda_frame {
    struct fuse_view v; /* zmax: without the frame's farthest depth */
    const float *depth;
    const uint8_t *color; /* or NULL */
};
/* n frames at a place of the device's memory. */
struct cuda_batch {
    cuda_frame *frames;
    float *depth;
    uint8_t *color;
    int n;
    bool has_color; /* one of them */
};

/* A frame in pinned memory on its way to the device. */
struct feed_slot {
    float *depth;
    uint8_t *color;
    cudaEvent_t event[2]; /* around its copy */
    bool used;
};
/* One of the two batches that take turns. */
struct feed_turn {
    cuda_frame *frames;   /* pinned */
    cudaEvent_t event[3]; /* copied, work begins, worked on */
    bool used;
};

class fuse_feed {
    struct recon_ctx *ctx;
    struct recon_frames *frames;
    const struct fuse_plan *plan;
    struct recon_cost *cost; /* waits, copies, device time */
    copier helpers;
    feed_slot slots[FEED_SLOTS] = {};
    feed_turn turns[2] = {};
    feed_turn *now = nullptr;
    cuda_batch *places = nullptr;
    uint64_t n_places = 0, pixels, batches = 0, pulled = 0, held = 0; /* held: batches that are all in their places */
    cudaStream_t copies = nullptr;

    int make_slot(feed_slot &s, char *pinned);
    int make_turn(feed_turn &h, char *pinned);
    int make_place(Scratch &scratch, cuda_batch &b);
    int reuse(feed_slot &s);
    int reuse(feed_turn &h);
    int send(feed_turn &h, cuda_batch &b, int n, const struct recon_frame &f);
    int pull(feed_turn &h, cuda_batch &b, int *ret_n);
    int send_views(feed_turn &h, cuda_batch &b);

public: /* functions give 0, or -1 after fail() */
    uint64_t taken = 0; /* frames, since the source was last begun */

    fuse_feed(struct recon_ctx *ctx, struct recon_frames *frames, const struct fuse_plan *plan, struct recon_cost *cost);
    fuse_feed(const fuse_feed &) = delete;
    fuse_feed &operator=(const fuse_feed &) = delete;
    ~fuse_feed(); /* both queues are empty before the memory goes back, also after a failure: destroyed before scratch */
    int begin(Scratch &scratch, uint64_t places);
    /* The next batch, uploaded before what the main queue is given from now on; NULL: there is none. launched() once its work is in
     * the queue. */
    int next(cuda_batch **ret);
    int launched();
    int finish(); /* waits until all is done */
    int again();  /* from the first frame on, after finish() */
};

/* Places that hold all of the frames, where a quarter of free_bytes (and 8 GiB) does; else two. */
uint64_t feed_places(const struct fuse_plan *p, const struct recon_frames *f, uint64_t free_bytes);
uint64_t feed_device_bytes(const struct fuse_plan *p, const struct recon_camera *c, uint64_t places);
uint64_t feed_pinned_bytes(const struct recon_camera *c);
/* Adds the device time between two events to *sum; waits. */
int feed_elapsed(struct recon_ctx *ctx, cudaEvent_t from, cudaEvent_t to, double *sum);

#endif
