#include "config.h"
#include "agree.h"

#include <math.h>
#include <stdlib.h>

struct recon_mesh agree_sheet(uint32_t n, uint32_t seed)
{
    struct recon_mesh m = mesh_of((uint64_t)n * n, 2ull * (n - 1) * (n - 1));
    uint32_t *f = m.index;

    m.rgb = xcalloc(3 * m.vertices, 1);
    for (uint32_t i = 0; i < n * n; i++) {
        m.xyz[3 * i] = (float)(i / n) + 0.3f * uniform(&seed);
        m.xyz[3 * i + 1] = (float)(i % n) + 0.3f * uniform(&seed);
        m.xyz[3 * i + 2] = sinf((float)(i / n)) * cosf((float)(i % n) / 2) + 0.2f * uniform(&seed);
        m.rgb[3 * i] = (uint8_t)next_random(&seed);
    }
    for (uint32_t i = 0; i + 1 < n; i++)
        for (uint32_t j = 0; j + 1 < n; j++, f += 6) {
            uint32_t a = i * n + j;

            memcpy(f, (uint32_t[]){ a, a + n, a + 1, a + 1, a + n, a + n + 1 }, 24);
        }
    return m;
}

/* Vertices are renumbered and faces reordered. */
void agree_shuffle(struct recon_mesh *m, uint32_t seed)
{
    uint32_t *at = xcalloc(m->vertices, 4);
    float *xyz = xcalloc(3 * m->vertices, 4);

    for (uint32_t i = 0; i < m->vertices; i++) {
        uint32_t k = (uint32_t)(((uint64_t)next_random(&seed) << 24 | next_random(&seed)) % (i + 1));

        at[i] = at[k];
        at[k] = i;
    }
    for (uint64_t i = 0; i < m->vertices; i++)
        memcpy(xyz + 3 * (uint64_t)at[i], m->xyz + 3 * i, 12);
    for (uint64_t i = 0; i < 3 * m->faces; i++)
        m->index[i] = at[m->index[i]];
    for (uint64_t i = m->faces - 1; i > 0; i--) {
        uint64_t k = ((uint64_t)next_random(&seed) << 24 | next_random(&seed)) % (i + 1);
        uint32_t x[3];

        memcpy(x, m->index + 3 * i, 12);
        memcpy(m->index + 3 * i, m->index + 3 * k, 12);
        memcpy(m->index + 3 * k, x, 12);
    }
    free(m->xyz);
    free(at);
    m->xyz = xyz;
}

/* A sphere of n x n quads around z, closed. */
struct recon_mesh agree_ball(uint32_t n)
{
    struct recon_mesh m = mesh_of((uint64_t)n * (n - 1) + 2, 2ull * n * (n - 1));
    uint32_t *f = m.index, top = n * (n - 1), bottom = top + 1;

    for (uint32_t i = 1; i < n; i++)
        for (uint32_t j = 0; j < n; j++) {
            double a = 3.14159265358979 * i / n, b = 2 * 3.14159265358979 * j / n;
            float *p = m.xyz + 3 * ((uint64_t)(i - 1) * n + j);

            p[0] = (float)(sin(a) * cos(b));
            p[1] = (float)(sin(a) * sin(b));
            p[2] = (float)cos(a);
        }
    m.xyz[3 * (uint64_t)top + 2] = 1;
    m.xyz[3 * (uint64_t)bottom + 2] = -1;
    for (uint32_t j = 0; j < n; j++) {
        uint32_t k = (j + 1) % n, last = (n - 2) * n;

        memcpy(f, (uint32_t[]){ top, j, k, bottom, last + k, last + j }, 24);
        f += 6;
        for (uint32_t i = 0; i + 2 < n; i++, f += 6)
            memcpy(f, (uint32_t[]){ i * n + j, (i + 1) * n + j, i * n + k, i * n + k, (i + 1) * n + j, (i + 1) * n + k }, 24);
    }
    return m;
}

/* Few vertices; some seeds name one that is not there. */
struct recon_mesh agree_garbage(uint32_t seed)
{
    uint32_t n = 3 + next_random(&seed) % 40, f = 1 + next_random(&seed) % 90;
    struct recon_mesh m = mesh_of(n, f);

    for (uint32_t i = 0; i < 3 * n; i++)
        m.xyz[i] = (float)(next_random(&seed) % 4);
    for (uint32_t i = 0; i < 3 * f; i++)
        m.index[i] = next_random(&seed) % n;
    if (seed % 16 == 0)
        m.index[f] = n + 5; /* refused */
    return m;
}

struct recon_mesh agree_book(uint32_t pages, uint32_t seed)
{
    struct recon_mesh m = mesh_of(pages + 2, 2ull * pages);

    for (uint32_t i = 0; i < 3 * m.vertices; i++)
        m.xyz[i] = uniform(&seed);
    for (uint32_t i = 0; i < 2 * pages; i++) {
        uint32_t v[3] = { 0, 1, 2 + (i < pages ? i : next_random(&seed) % pages) }, turn = next_random(&seed);

        for (uint32_t k = 0; k < 3; k++)
            m.index[3 * i + k] = v[(turn & 1 ? k : 2 - k) % 3];
    }
    return m;
}

void agree_each_mesh(void (*call)(const struct recon_mesh *, const char *))
{
    struct recon_mesh m = agree_sheet(agree_small ? 40 : 500, 1);
    char name[40];

    call(&m, "sheet");
    agree_shuffle(&m, 2);
    call(&m, "shuffled sheet");
    free_mesh(&m);
    m = agree_ball(agree_small ? 30 : 300);
    call(&m, "ball");
    free_mesh(&m);
    m = agree_book(agree_small ? 50 : 300, 5);
    call(&m, "book");
    free_mesh(&m);
    m = mesh_of(5, 0);
    call(&m, "no faces");
    free_mesh(&m);
    for (uint32_t i = 0; i < (agree_small ? 6 : 200); i++) {
        m = agree_garbage(77 * i + 3);
        snprintf(name, sizeof(name), "garbage %u", i);
        call(&m, name);
        free_mesh(&m);
    }
}

struct recon_points agree_cloud(uint64_t n, uint32_t seed, bool ties)
{
    struct recon_points p = { .n = n, .xyz = xcalloc(3 * n + 1, 4), .normals = xcalloc(3 * n + 1, 4), .rgb = xcalloc(3 * n + 1, 1) };

    for (uint64_t i = 0; i < 3 * n; i++) {
        p.xyz[i] = ties ? (float)(next_random(&seed) % 20) : uniform(&seed);
        p.normals[i] = uniform(&seed);
        p.rgb[i] = (uint8_t)next_random(&seed);
    }
    return p;
}

void agree_free_points(struct recon_points *p)
{
    free(p->xyz);
    free(p->normals);
    free(p->rgb);
}
