/* kernels/test/made.h - meshes made for tests, and kernels run over them within what they say they take. */
#ifndef KERNELS_TEST_MADE_H
#define KERNELS_TEST_MADE_H

#include "kernels/mesh_rows.h"
#include "kernels/plan.h"
#include "kernels/test/ctx.h"
#include "kernels/test/inputs.h"
#include "kernels/test/mesh_check.h"

/* Released with free_mesh. */
struct recon_mesh grid(uint32_t n, float h);    /* n x n points in the plane, triangles up, a bump of height h */
struct recon_mesh sphere(uint32_t n);           /* the golden sphere through marching cubes */
struct recon_mesh garbage(uint32_t seed);       /* anything: few vertices, so that edges and faces repeat */

/* kind 0: anywhere; 1: on a lattice, so that distances tie and points repeat; 2: in clumps. Released with free_points. */
struct recon_points cloud(uint64_t n, uint32_t seed, int kind);
void free_points(struct recon_points *p);

/* The points inside. */
void sign_of(const struct recon_module *mod, const struct recon_mesh *m, const struct recon_points *in, int method, struct recon_points *r,
             struct test_ctx *t);
/* Parity and winding number agree, also with those of the plain references, which look at the first `plain` points; none is on the
 * surface. */
void signs_agree(const struct recon_module *cpu, const struct recon_module *ref, const struct recon_mesh *m, const struct recon_points *in,
                 uint64_t plain);

/* What was taken stays below what was said before; 2 KiB for what malloc adds. */
void within(const struct test_ctx *t, const char *name, const struct recon_cost *most);
/* A kernel of one mesh to one mesh; p NULL: its defaults. The kernel's status. */
int run_mesh(struct test_ctx *t, const struct recon_module *mod, const char *name, const struct recon_mesh *m, struct recon_value *p,
             struct recon_mesh *r);
void same_mesh(const struct recon_mesh *a, const struct recon_mesh *b);
/* The census of mesh.check as JSON; dir for its file. */
struct str census_text(const struct recon_module *mod, const char *dir, const struct recon_mesh *m);

#endif
