/* tests/gpu/agree.h - what the parts of agree share: the two modules, one case, inputs made in place. */
#ifndef TESTS_GPU_AGREE_H
#define TESTS_GPU_AGREE_H

#include "kernels/mesh_rows.h"
#include "kernels/plan.h"
#include "kernels/test/ctx.h"
#include "kernels/test/inputs.h"

struct tally {
    int cases, differ;
    double share; /* most device memory that a case took, of what was said before it */
    char first[1200];
};

extern bool agree_small, agree_plain; /* plain: the other module is the plain forms, which look at everything */
extern int agree_patience; /* cancelled() says yes at the call of that number of a run; 0: never */

/* The defaults of a kernel's parameters; free with free(). */
struct recon_value *agree_params(const char *kernel);
/* Runs it twice on the first module and once on the other. Bytes must be the same, or floats at most so far apart; of refusals status and
 * rule; files; warnings and notes, of which 'ref' tells less; and a device must not take more memory than it said before. */
void agree_one(struct tally *t, const char *kernel, const char *what, const void *const *in, const struct recon_value *params, double most);
/* Its line; 1 when any differ. */
int agree_told(const char *name, const struct tally *t);

/* ---- inputs ---- */

/* Meshes: a sheet, shuffled, a ball, a book, without faces, and ones whose faces repeat, turn, and name a vertex twice or none that is there. */
void agree_each_mesh(void (*call)(const struct recon_mesh *, const char *));
struct recon_mesh agree_sheet(uint32_t n, uint32_t seed);        /* n x n vertices with colours */
struct recon_mesh agree_ball(uint32_t n);                        /* closed */
struct recon_mesh agree_book(uint32_t pages, uint32_t seed);     /* faces at one edge, either way; half of them repeat others */
struct recon_mesh agree_garbage(uint32_t seed);
void agree_shuffle(struct recon_mesh *m, uint32_t seed);
/* ties: whole numbers, many equal. Colours and normals go along. */
struct recon_points agree_cloud(uint64_t n, uint32_t seed, bool ties);
void agree_free_points(struct recon_points *p);

/* ---- parts: each gives how many lines failed ---- */

int agree_meshes(void);
int agree_fill(void);
int agree_clean(void);
int agree_simplify(void);
int agree_points(void);
int agree_volumes(void);

#endif
