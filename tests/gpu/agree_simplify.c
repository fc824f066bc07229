/* mesh.simplify by rounds: the host's bytes to any target, on anything. */
#include "config.h"
#include "agree.h"

#include <stdlib.h>

static struct tally simple;

static void one(const struct recon_mesh *m, const char *what, double faces, double vertices, double error)
{
    struct recon_value *p = agree_params(MESH_SIMPLIFY_NAME);
    char name[120];

    p[MESH_SIMPLIFY_METHOD].i = MESH_SIMPLIFY_ROUNDS;
    p[MESH_SIMPLIFY_FACES].i = (int64_t)faces;
    p[MESH_SIMPLIFY_VERTICES].i = (int64_t)vertices;
    p[MESH_SIMPLIFY_ERROR].f = error;
    snprintf(name, sizeof(name), "%s to %.0f faces, %.0f vertices, error %g", what, faces, vertices, error);
    agree_one(&simple, MESH_SIMPLIFY_NAME, name, (const void *[]){ m, NULL }, p, 0);
    free(p);
}

static void ways(const struct recon_mesh *m, const char *what)
{
    double f = (double)m->faces, v = (double)m->vertices;

    one(m, what, f / 10 + 1, 0, 0);
    one(m, what, 1, 0, 0);
    one(m, what, 0, v / 3 + 1, 0);
    one(m, what, 0, 0, 0.1);
    one(m, what, f / 20 + 1, v, 0.3);
    one(m, what, 0, 0, 0); /* refused */
}

int agree_simplify(void)
{
    struct recon_mesh m[] = { spindle(20), spindle(agree_small ? 50 : 2000) };

    agree_each_mesh(ways);
    for (size_t i = 0; i < COUNT(m); i++) {
        ways(&m[i], "spindle");
        free_mesh(&m[i]);
    }
    return agree_told(MESH_SIMPLIFY_NAME, &simple);
}
