#include "config.h"
#include "kernels/test/mesh_check.h"

#include <math.h>
#include <stdlib.h>

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static void measure(const struct recon_mesh *m, uint64_t f, struct mesh_facts *r)
{
    double p[3][3], n[3], e[2][3];

    for (int i = 0; i < 3; i++)
        for (int a = 0; a < 3; a++) {
            p[i][a] = m->xyz[3 * (uint64_t)m->index[3 * f + (uint64_t)i] + (uint64_t)a];
            r->bad += !isfinite(p[i][a]);
        }
    for (int a = 0; a < 3; a++) {
        e[0][a] = p[1][a] - p[0][a];
        e[1][a] = p[2][a] - p[0][a];
    }
    for (int a = 0; a < 3; a++) {
        int b = (a + 1) % 3, c = (a + 2) % 3;

        n[a] = e[0][b] * e[1][c] - e[0][c] * e[1][b];
    }
    r->area += sqrt(n[0] * n[0] + n[1] * n[1] + n[2] * n[2]) / 2;
    r->volume += (p[0][0] * n[0] + p[0][1] * n[1] + p[0][2] * n[2]) / 6;
}

void mesh_facts(const struct recon_mesh *m, struct mesh_facts *r)
{
    uint64_t n = 3 * m->faces, *edge = xmalloc((n + 1) * 8);
    uint8_t *used = xcalloc((size_t)m->vertices + 1, 1);

    *r = (struct mesh_facts){ 0 };
    for (uint64_t f = 0; f < m->faces; f++) {
        const uint32_t *v = m->index + 3 * f;

        if (v[0] >= m->vertices || v[1] >= m->vertices || v[2] >= m->vertices || v[0] == v[1] ||
            v[1] == v[2] || v[2] == v[0]) {
            r->bad++;
            memset(edge + 3 * f, 0, 24);
            continue;
        }
        measure(m, f, r);
        for (int i = 0; i < 3; i++) {
            used[v[i]] = 1;
            edge[3 * f + (uint64_t)i] = (uint64_t)v[i] << 32 | v[(i + 1) % 3];
        }
    }
    qsort(edge, n, 8, ascending);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t opposite = edge[i] << 32 | edge[i] >> 32;
        bool paired = bsearch(&opposite, edge, n, 8, ascending) != NULL;

        r->repeated += i && edge[i] == edge[i - 1];
        r->open += !paired;
        r->edges += !paired || edge[i] < opposite;
    }
    for (uint64_t i = 0; i < m->vertices; i++)
        r->unused += !used[i];
    r->euler = (int64_t)m->vertices - (int64_t)r->edges + (int64_t)m->faces;
    free(edge);
    free(used);
}
