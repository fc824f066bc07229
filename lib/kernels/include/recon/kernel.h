/* recon/kernel.h - a kernel module is a shared object that exports `recon_module`. C11 and C++.
 *
 * The runner dlopens each module of its kernel folder, refuses another ABI with status 78, and calls kernels
 * through the tables below. A module needs no symbol of the runner: what it may ask of it stands in recon_ctx.
 * A kernel reads its inputs, allocates its outputs through the context, keeps no state between calls, gives the
 * same bits from run to run, and returns 0, or -1 after ctx->host->fail().
 */
#ifndef RECON_KERNEL_H
#define RECON_KERNEL_H

#include <stddef.h>
#include <stdint.h>
#include "recon/data.h"

#ifdef __cplusplus
extern "C" {
#endif

#define RECON_KERNEL_ABI 2u

enum recon_ptype { RECON_INT = 1, RECON_FLOAT, RECON_BOOL, RECON_TEXT, RECON_CHOICE, RECON_VEC };

/* A port with this flag is wanted on the host even by a device's kernel. Frames are always on the host. */
#define RECON_PORT_OPTIONAL 1u
#define RECON_PORT_HOST 2u

struct recon_port { /* name NULL ends a list */
    const char *name;
    uint32_t type; /* enum recon_slot */
    uint32_t flags;
    const char *doc;
};

struct recon_param { /* name NULL ends a list */
    const char *name, *unit, *doc;
    const char *def; /* as text; NULL: must be given; a vector: "1, 2, 3"; "" for an empty vector or text */
    uint32_t type;   /* enum recon_ptype */
    double min, max; /* RECON_INT, RECON_FLOAT and each element of a RECON_VEC; both 0: any */
    const char *choices; /* RECON_CHOICE: "lt|ge" */
};

/* One value; the runner has parsed it and held it against its row. */
struct recon_value {
    int64_t i;       /* RECON_INT, RECON_BOOL (0 or 1), RECON_CHOICE (its place in choices from 0) */
    double f;        /* RECON_FLOAT, RECON_INT */
    const char *s;   /* RECON_TEXT, RECON_CHOICE */
    const double *v; /* RECON_VEC */
    uint32_t n;      /* elements of v */
};

/* Bounds before a run (never too small), counts after it. */
struct recon_cost {
    uint64_t host_bytes, device_bytes; /* memory beyond the inputs, outputs included */
    uint64_t moved_bytes, flops;       /* least traffic of main memory and operations of the work done */
    uint64_t items;                    /* voxels, vertices, pixels: the kernel's own unit */
    uint64_t copied_bytes;             /* between host and device, done inside the kernel */
    double wait_ms;                    /* spent waiting for a source of frames */
    double copy_ms;                    /* device time of copied_bytes; it may overlap the work */
    double device_ms;                  /* device time of the work where the kernel knows better than the marks around
                                          it (it waits for frames between batches); 0: the runner's marks */
};

enum recon_log { RECON_NOTE = 0, RECON_WARN = 1 };

struct recon_ctx;
struct recon_host { /* the runner's services; every call is safe from the kernel's own thread only */
    void *(*alloc)(struct recon_ctx *, uint64_t bytes); /* host memory, 64-byte aligned, counted; NULL after fail() */
    void (*free)(struct recon_ctx *, void *);           /* NULL is fine */
    /* Sets the error of this step and returns -1. code: an exit status (65 data, 71 memory, 74 I/O, 70 defect).
     * rule: a name of CHECKS.md or NULL; object: what it is about (a file, a frame, a parameter). */
    int (*fail)(struct recon_ctx *, int code, const char *rule, const char *object, const char *fmt, ...);
    void (*log)(struct recon_ctx *, enum recon_log level, const char *rule, const char *object, const char *fmt, ...);
    void (*output)(struct recon_ctx *, const char *path); /* a file written below ctx->out, for the record */
    int (*cancelled)(struct recon_ctx *);                 /* deadline or signal: return -1 soon, after fail() */
};
struct recon_ctx {
    uint32_t abi;
    const struct recon_host *host;
    const char *dataset; /* path of the dataset, NULL if there is none */
    const char *out;     /* folder for output files, exists */
    int threads;         /* how many to use, >= 1 */
    int device;          /* index of the module's device, -1 for the CPU */
    void *stream;        /* the device's queue (cudaStream_t), NULL for the CPU */
    void *runner;        /* the runner's own */
};

struct recon_kernel {
    uint32_t abi; /* RECON_KERNEL_ABI */
    const char *name, *doc;
    const struct recon_port *in, *out;
    const struct recon_param *params;
    /* Bounds from inputs and parameters; inputs may be NULL pointers when only an estimate without data is asked. */
    int (*bound)(struct recon_ctx *, const void *const *in, const struct recon_value *params, struct recon_cost *);
    /* in[], params[] and out[] in the order of the lists; an absent optional input is NULL. out[i] points to a zeroed
     * struct of its type (recon/data.h), which the kernel fills. */
    int (*run)(struct recon_ctx *, const void *const *in, const struct recon_value *params, void *const *out,
               struct recon_cost *);
    int (*selftest)(struct recon_ctx *); /* a tiny built-in input against its golden result: 0, or -1 after fail() */
    /* Optional, NULL: unknown before a run. Fills the sizes of out[] (dimensions and counts, never arrays) from inputs
     * whose arrays may be NULL, so that bounds can be told along a pipeline before anything runs. 0 or -1. */
    int (*shape)(struct recon_ctx *, const void *const *in, const struct recon_value *params, void *const *out);
};

/* What a device offers the runner. All return 0 or -1 after ctx->host->fail(), unless said otherwise. */
struct recon_device {
    uint32_t abi;
    const char *name;                                     /* "cuda" */
    int (*count)(char *why, size_t size);                 /* usable devices, 0 with the reason in why */
    int (*open)(struct recon_ctx *, int index);           /* sets ctx->device and ctx->stream */
    void (*close)(struct recon_ctx *);
    int (*describe)(struct recon_ctx *, char *name, size_t size, uint64_t *total, uint64_t *free_bytes);
    void *(*alloc)(struct recon_ctx *, uint64_t bytes);   /* NULL after fail() with status 71 */
    void (*free)(struct recon_ctx *, void *);
    /* host must stay as it is until the next sync() or download(), which waits */
    int (*upload)(struct recon_ctx *, void *device, const void *host, uint64_t bytes);
    int (*download)(struct recon_ctx *, void *host, const void *device, uint64_t bytes);
    int (*sync)(struct recon_ctx *);
    int (*mark)(struct recon_ctx *, int slot);            /* records a time mark in the queue; slots 0..15 */
    int (*elapsed)(struct recon_ctx *, int from, int to, double *ms); /* waits for both marks */
    uint64_t (*peak)(struct recon_ctx *, int reset);      /* most device memory taken through alloc since reset */
    /* Measured or known ceilings for share_of_peak: bytes/s and fp32 flop/s; 0 unknown. */
    void (*ceilings)(struct recon_ctx *, double *bytes_per_s, double *flops_per_s);
};

struct recon_module {
    uint32_t abi;
    const char *name;                             /* "cpu", "cuda", "ref" */
    const struct recon_device *device;            /* NULL for the CPU */
    const struct recon_kernel *const *kernels;    /* ends with NULL */
    /* Optional. 1: this module has no form of its kernel for such inputs and parameters (a method that works one
     * edge after the other, say), and the runner takes the module 'cpu' for the step; what is missing goes to why. Inputs may be NULL, and
     * their arrays stand anywhere: only the other members are to be read. */
    int (*elsewhere)(struct recon_ctx *, const struct recon_kernel *, const void *const *in, const struct recon_value *params,
                     char *why, size_t size);
};
extern const struct recon_module recon_module;

#ifdef __cplusplus
}
#endif
#endif
