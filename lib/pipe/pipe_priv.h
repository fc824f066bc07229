/* What the files of lib/pipe share. */
#ifndef RECON_PIPE_PRIV_H
#define RECON_PIPE_PRIV_H

#include "pipe/pipe.h"

/* The runner's side of a recon_ctx: what the services of recon_host work on. */
struct head;
struct host_state {
    uint64_t now, peak;          /* counted host bytes */
    struct head *blocks;         /* all of them */
    struct err err;              /* of the step under way; the first failure stays */
    char rule[64], object[256];  /* "" when not given */
    double end;                  /* clock_ms when the step's time is up, 0: never */
    const struct run_args *args;
    struct run_report *report;
};
extern const struct recon_host host_services;
void *host_alloc(struct recon_ctx *ctx, uint64_t bytes);
void host_free(struct recon_ctx *ctx, void *p);
void host_begin(struct host_state *s, const struct run_args *args, struct run_report *report);
/* Frees what is left when nothing lives any more; how many bytes. */
uint64_t host_reap(struct host_state *s);
/* The failure of a call that gave -1: code and text into err, a finding into the events. */
int host_failure(struct host_state *s, const char *what, struct err *err);

/* A slot while it lives: the struct of its type on the host, on the device, or both. */
struct live {
    void *at[2];                 /* by enum recon_place */
    bool used;                   /* frames: pulled once, to be rewound */
};

struct runner {
    struct device device;
    const struct recon_device *dev; /* NULL on the host */
    struct recon_ctx host, gpu;     /* gpu only with dev */
    struct host_state state;
    double bytes_per_s, flops_per_s; /* of the device, 0: unknown */
};
struct recon_ctx *runner_ctx(struct runner *r, const struct plan_step *s);
/* The step, or its form on the host where the device's module has none for these inputs: structs of their slots, wherever their
 * arrays stand, or NULL. */
const struct plan_step *runner_choose(struct runner *r, const struct plan_step *s, const void *const *in);

/* Makes the slot's data be at place; copied bytes and time are added. */
int live_ensure(struct runner *r, struct live *l, enum recon_slot type, enum recon_place place, uint64_t *bytes,
                double *ms);
void live_release(struct runner *r, struct live *l, enum recon_slot type);
void *live_new(enum recon_slot type, enum recon_place place);
/* What of corners and faces one mesh has and the other has not, in words; NULL: nothing. Owned by the caller. */
char *live_lost(const struct recon_mesh *from, const struct recon_mesh *to);
uint64_t live_bytes(enum recon_slot type, void *slot); /* of its arrays, were they there */

#endif
