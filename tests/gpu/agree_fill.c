/* mesh.fill_holes: holes of many lengths, that touch, at non-manifold places, faces on their own, long fans at a border. */
#include "config.h"
#include "agree.h"

#include <math.h>
#include <stdlib.h>

static struct tally filled;

static void fill_one(const struct recon_mesh *m, const char *what)
{
    static const int64_t most[] = { 3, 4, 12, 300, 100000 };
    struct recon_value *p = agree_params(MESH_FILL_NAME);
    char name[80];

    for (size_t i = 0; i < (m->faces < 100000 ? COUNT(most) : 3); i++) {
        p[MESH_FILL_MAX] = (struct recon_value){ .i = most[i], .f = (double)most[i] };
        snprintf(name, sizeof(name), "%s, at most %lld edges", what, (long long)most[i]);
        agree_one(&filled, MESH_FILL_NAME, name, (const void *[]){ m, NULL }, p, 0);
    }
    free(p);
}

/* Takes away one face of `one_in`; so many faces between vertices at random come behind the rest. */
static void pierce(struct recon_mesh *m, uint32_t one_in, uint32_t further, uint32_t seed)
{
    uint64_t k = 0;

    for (uint64_t f = 0; f < m->faces; f++)
        if (next_random(&seed) % one_in)
            memmove(m->index + 3 * k++, m->index + 3 * f, 12);
    for (; further > 0 && k < m->faces; further--, k++)
        for (int i = 0; i < 3; i++)
            m->index[3 * k + i] = next_random(&seed) % (uint32_t)m->vertices;
    m->faces = k;
}

/* Texture coordinates, normals of corners, polygons; bytes that no reader packed, which are refused once a face comes. */
static void attach(struct recon_mesh *m, bool extra, uint32_t seed)
{
    m->uvs = m->corner_normals = 50;
    m->uv = xcalloc(100, 4);
    m->corner_normal = xcalloc(150, 4);
    m->uv_index = xcalloc(3 * m->faces, 4);
    m->normal_index = xcalloc(3 * m->faces, 4);
    m->joined = xcalloc(m->faces, 1);
    for (uint64_t i = 0; i < 3 * m->faces; i++) {
        m->uv_index[i] = i % 7 ? next_random(&seed) % 50 : RECON_NONE;
        m->normal_index[i] = i % 5 ? next_random(&seed) % 50 : RECON_NONE;
        m->joined[i / 3] = i % 9 == 8;
    }
    if (extra) {
        m->extra_bytes = 300;
        m->extra = xcalloc(300, 1);
    }
}

static void pierced(void)
{
    static const uint32_t rows[][3] = { { 2, 0, 0 }, { 3, 0, 1 }, { 7, 9, 1 }, { 40, 0, 0 }, { 60, 30, 1 }, { 300, 3, 1 }, { 5, 400, 0 } };
    char name[60];

    for (size_t i = 0; i < COUNT(rows); i++)
        for (uint32_t kind = 0; kind < 2; kind++) {
            struct recon_mesh m = kind ? agree_sheet(agree_small ? 30 : 200, 8) : agree_ball(agree_small ? 20 : 150);

            pierce(&m, rows[i][0], rows[i][1], 5 + (uint32_t)i);
            if (rows[i][2])
                agree_shuffle(&m, 3);
            if (i & 1 && (m.normals = xcalloc(3 * m.vertices, 4)))
                memcpy(m.normals, m.xyz, 12 * m.vertices);
            snprintf(name, sizeof(name), "%s, one face of %u gone, %u more", kind ? "sheet" : "ball", rows[i][0], rows[i][1]);
            fill_one(&m, name);
            if (i < 3) {
                attach(&m, i == 2, 7);
                snprintf(name, sizeof(name), "%s with all that a mesh has, %zu", kind ? "sheet" : "ball", i);
                fill_one(&m, name);
            }
            free_mesh(&m);
        }
}

enum way { PLAIN, TURNED, BACKWARDS, WAYS };

/* n faces around vertex 0, open between the last and the first, in their order or backwards; turned: one of them runs the other
 * way, which ends the fan there. */
static void fan(uint32_t n, enum way way)
{
    static const char *const names[] = { "a fan", "a fan with a turned face", "a fan backwards" };
    struct recon_mesh m = mesh_of(n + 2, n);

    for (uint32_t i = 0; i <= n; i++) {
        double a = 6 * (double)i / n;

        m.xyz[3 * i + 3] = (float)cos(a);
        m.xyz[3 * i + 4] = (float)sin(a);
        if (i < n)
            memcpy(m.index + 3 * (uint64_t)(way == BACKWARDS ? n - 1 - i : i), (uint32_t[]){ 0, i + 1, i + 2 }, 12);
    }
    if (way == TURNED) {
        m.index[3 * (n / 2) + 1] = n / 2 + 2;
        m.index[3 * (n / 2) + 2] = n / 2 + 1;
    }
    fill_one(&m, names[way]);
    free_mesh(&m);
}

/* Faces without a neighbour, some at a vertex of each other, some twice. */
static void alone(void)
{
    struct recon_mesh m = mesh_of(60, 24);
    uint32_t seed = 4;

    for (uint32_t i = 0; i < 180; i++)
        m.xyz[i] = uniform(&seed);
    for (uint32_t f = 0; f < 24; f++)
        memcpy(m.index + 3 * (uint64_t)f, (uint32_t[]){ f % 20, 20 + 2 * (f % 20), 21 + 2 * (f % 20) }, 12);
    fill_one(&m, "faces on their own");
    m.faces = 20;
    fill_one(&m, "nothing but faces on their own");
    free_mesh(&m);
}

int agree_fill(void)
{
    static const uint32_t fans[] = { 2, 3, 255, 256, 257, 258, 1500, 70000 };

    agree_each_mesh(fill_one);
    pierced();
    for (size_t i = 0; i < (agree_small ? 7 : COUNT(fans)); i++)
        for (int way = 0; way < WAYS; way++)
            fan(fans[i], (enum way)way);
    alone();
    return agree_told(MESH_FILL_NAME, &filled);
}
