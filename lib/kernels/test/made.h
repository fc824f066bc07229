/* kernels/test/made.h - meshes made for tests, and kernels run over them within what they say they take. */
#ifndef KERNELS_TEST_MADE_H
#define KERNELS_TEST_MADE_H

#include "kernels/mesh_rows.h"
#include "kernels/plan.h"
#include "kernels/test/ctx.h"
#include "kernels/test/mesh_check.h"

uint32_t next_random(uint32_t *s);
float uniform(uint32_t *s); /* -1 to 1 */

/* Released with free_mesh. */
struct recon_mesh mesh_of(uint64_t vertices, uint64_t faces);
void free_mesh(struct recon_mesh *m);
struct recon_mesh grid(uint32_t n, float h);    /* n x n points in the plane, triangles up, a bump of height h */
struct recon_mesh sphere(uint32_t n);           /* the golden sphere through marching cubes */
struct recon_mesh garbage(uint32_t seed);       /* anything: few vertices, so that edges and faces repeat */

/* What was taken stays below what was said before; 2 KiB for what malloc adds. */
void within(const struct test_ctx *t, const char *name, const struct recon_cost *most);
/* A kernel of one mesh to one mesh; p NULL: its defaults. The kernel's status. */
int run_mesh(struct test_ctx *t, const struct recon_module *mod, const char *name, const struct recon_mesh *m, struct recon_value *p,
             struct recon_mesh *r);
void same_mesh(const struct recon_mesh *a, const struct recon_mesh *b);
/* The census of mesh.check as JSON; dir for its file. */
struct str census_text(const struct recon_module *mod, const char *dir, const struct recon_mesh *m);

#endif
