/* mesh.clean on meshes that are broken in all ways it knows of. */
#include "config.h"
#include "agree.h"

#include <math.h>
#include <stdlib.h>

static struct tally cleaned;

/* A case of each way to clean: every switch on, off, and at random. */
static void clean_one(const struct recon_mesh *m, const char *what)
{
    static const int switches[] = { MESH_CLEAN_MERGE, MESH_CLEAN_DEGENERATE, MESH_CLEAN_REPEATED, MESH_CLEAN_NON_MANIFOLD, MESH_CLEAN_ORIENT, MESH_CLEAN_UNUSED,
                                    MESH_CLEAN_SPLIT };
    static uint32_t seed = 5;
    struct recon_value *p = agree_params(MESH_CLEAN_NAME);
    char name[120];

    for (int i = 0; i < (m->faces > 1000000 ? 2 : 6); i++) {
        uint32_t ways = i == 0 ? 0x7f : i == 1 ? 0x10 : i == 2 ? 0x6f : i == 3 ? 0 : next_random(&seed);

        for (size_t k = 0; k < COUNT(switches); k++)
            p[switches[k]].i = ways >> k & 1;
        p[MESH_CLEAN_MIN_FACES].i = i > 1 && ways >> 7 & 1 ? 1 + ways % 7 : 0;
        p[MESH_CLEAN_LARGEST].i = i > 1 && ways >> 8 & 1 ? 1 + ways % 4 : 0;
        snprintf(name, sizeof(name), "%s, switches %#x, min_faces %d, largest %d", what, ways & 0x7f, (int)p[MESH_CLEAN_MIN_FACES].i,
                 (int)p[MESH_CLEAN_LARGEST].i);
        agree_one(&cleaned, MESH_CLEAN_NAME, name, (const void *[]){ m, NULL }, p, 0);
    }
    free(p);
}

/* ---- what is done to meshes ---- */

static void turn(struct recon_mesh *m, uint64_t f)
{
    uint32_t v = m->index[3 * f + 1];

    m->index[3 * f + 1] = m->index[3 * f + 2];
    m->index[3 * f + 2] = v;
}

/* Room for more vertices and faces behind those that are there. */
static struct recon_mesh with_room(struct recon_mesh m, uint64_t vertices, uint64_t faces)
{
    struct recon_mesh r = mesh_of(m.vertices + vertices, m.faces + faces);

    memcpy(r.xyz, m.xyz, 12 * m.vertices);
    memcpy(r.index, m.index, 12 * m.faces);
    free_mesh(&m);
    return r;
}

/* Both beside each other, apart by so much along x. */
static struct recon_mesh both(struct recon_mesh a, struct recon_mesh b, float apart)
{
    uint64_t v = a.vertices, f = a.faces;
    struct recon_mesh r = with_room(a, b.vertices, b.faces);

    for (uint64_t i = 0; i < 3 * b.vertices; i++)
        r.xyz[3 * v + i] = b.xyz[i] + (i % 3 ? 0 : apart);
    for (uint64_t i = 0; i < 3 * b.faces; i++)
        r.index[3 * f + i] = b.index[i] + (uint32_t)v;
    free_mesh(&b);
    return r;
}

/* Every corner gets a vertex of its own. */
static struct recon_mesh soup(struct recon_mesh m)
{
    struct recon_mesh r = mesh_of(3 * m.faces, m.faces);

    for (uint64_t i = 0; i < 3 * m.faces; i++) {
        memcpy(r.xyz + 3 * i, m.xyz + 3 * (uint64_t)m.index[i], 12);
        r.index[i] = (uint32_t)i;
    }
    free_mesh(&m);
    return r;
}

/* A strip of n quads whose ends are joined after a half turn: it has one side. */
static struct recon_mesh moebius(uint32_t n)
{
    struct recon_mesh m = mesh_of(2ull * n, 2ull * n);

    for (uint32_t i = 0; i < n; i++) {
        double a = 2 * 3.14159265358979 * i / n;
        uint32_t k = i + 1 < n ? i + 1 : 0, low = i + 1 < n ? 2 * k : 1, high = i + 1 < n ? 2 * k + 1 : 0;

        for (int side = 0; side < 2; side++) {
            double w = (side ? 0.3 : -0.3) * cos(a / 2), z = (side ? 0.3 : -0.3) * sin(a / 2);

            memcpy(m.xyz + 3 * (2 * i + (uint32_t)side), (float[]){ (float)((1 + w) * cos(a)), (float)((1 + w) * sin(a)), (float)z }, 12);
        }
        memcpy(m.index + 6 * i, (uint32_t[]){ 2 * i, low, 2 * i + 1, 2 * i + 1, low, high }, 24);
    }
    return m;
}

/* n x n quads whose sides are joined, one pair after a turn: closed, with one side, in no space of three axes. */
static struct recon_mesh klein(uint32_t n)
{
    struct recon_mesh m = mesh_of((uint64_t)n * n, 2ull * n * n);
    uint32_t *f = m.index, seed = 3;

    for (uint64_t i = 0; i < 3 * m.vertices; i++)
        m.xyz[i] = uniform(&seed);
    for (uint32_t i = 0; i < n; i++)
        for (uint32_t j = 0; j < n; j++, f += 6) {
            uint32_t k = (j + 1) % n, next = (i + 1) % n, a = i + 1 < n ? j : (n - j) % n, b = i + 1 < n ? k : (n - k) % n;

            memcpy(f, (uint32_t[]){ i * n + j, next * n + a, i * n + k, i * n + k, next * n + a, next * n + b }, 24);
        }
    return m;
}

/* n pages on one spine, and the last of them again. */
static struct recon_mesh book(uint32_t n)
{
    struct recon_mesh m = mesh_of(n + 2ull, n + 1ull);
    uint32_t seed = n;

    m.xyz[3] = 1;
    for (uint32_t i = 0; i < n; i++) {
        memcpy(m.xyz + 3 * (i + 2), (float[]){ uniform(&seed), 1 + (float)(next_random(&seed) % 4), (float)(next_random(&seed) % 3) }, 12);
        memcpy(m.index + 3 * i, (uint32_t[]){ i & 1, !(i & 1), i + 2 }, 12);
    }
    memcpy(m.index + 3 * n, m.index + 3 * (n - 1), 12);
    return m;
}

/* ---- meshes ---- */

/* A small mesh to which anything may happen. */
static struct recon_mesh broken(uint32_t seed)
{
    struct recon_mesh m = seed & 1 ? agree_ball(3 + seed % 4) : seed & 2 ? moebius(3 + seed % 9) : agree_sheet(3 + seed % 4, seed);
    uint64_t f;

    if (next_random(&seed) % 3 == 0)
        m = both(m, next_random(&seed) & 1 ? agree_ball(3) : klein(3 + next_random(&seed) % 3), next_random(&seed) & 1 ? 0.5f : 5);
    if (next_random(&seed) % 4 == 0)
        m = soup(m);
    f = m.faces;
    m = with_room(m, 2, 12);
    for (uint64_t v = m.vertices - 2; v < m.vertices; v++) /* two at a place that is there, one at none */
        memcpy(m.xyz + 3 * v, next_random(&seed) % 8 ? (float[]){ -m.xyz[0], m.xyz[1], m.xyz[2] } : (float[]){ NAN, 1, 0 }, 12);
    for (uint64_t i = f; i < m.faces; i++) { /* more faces: anywhere, repeated, at an edge */
        uint32_t any[3] = { next_random(&seed) % (uint32_t)m.vertices, next_random(&seed) % (uint32_t)m.vertices, next_random(&seed) % (uint32_t)m.vertices };

        memcpy(m.index + 3 * i, m.index + 3 * (next_random(&seed) % i), 12);
        for (uint32_t k = next_random(&seed) % 4; k < 3; k++)
            m.index[3 * i + k] = any[k];
    }
    for (uint64_t i = next_random(&seed) % 5 ? 0 : m.faces; i < m.faces; i++)
        if (next_random(&seed) % 3 == 0)
            turn(&m, i);
    for (uint64_t i = 0; i < 3 * m.vertices; i++)
        if (next_random(&seed) % 40 == 0)
            m.xyz[i] = next_random(&seed) & 1 ? 0.0f : -0.0f;
    return m;
}

static struct recon_mesh inward(struct recon_mesh m)
{
    for (uint64_t f = 0; f < m.faces; f++)
        turn(&m, f);
    return m;
}

static struct recon_mesh half_turned(struct recon_mesh m)
{
    uint32_t seed = 11;

    for (uint64_t f = 0; f < m.faces; f++)
        if (next_random(&seed) & 1)
            turn(&m, f);
    return m;
}

/* Closed parts on a plane: their volumes are nothing but rounding, whose sign is that of one order of the sum. */
static struct recon_mesh flat(uint32_t parts)
{
    struct recon_mesh m = agree_ball(4);
    uint32_t seed = 13;

    for (uint32_t i = 1; i < parts; i++)
        m = both(m, agree_ball(4 + i % 5), 0);
    for (uint64_t v = 0; v < m.vertices; v++)
        memcpy(m.xyz + 3 * v, (float[]){ uniform(&seed) * uniform(&seed), uniform(&seed) * uniform(&seed), 0.7f }, 12);
    return m;
}

/* Balls in a row, of more and more faces; the last touches the first at a vertex and along an edge. */
static struct recon_mesh many(uint32_t n)
{
    struct recon_mesh m = agree_ball(3);

    for (uint32_t i = 1; i < n; i++)
        m = both(m, i % 3 == 2 ? moebius(3 + i % 5) : agree_ball(3 + i % 4), 3 * (float)i);
    m.index[3 * m.faces - 1] = 0;
    m.index[3 * m.faces - 2] = m.index[1];
    return m;
}

static struct recon_mesh shuffled(struct recon_mesh m)
{
    agree_shuffle(&m, 7);
    return m;
}

/* A part of one side, and faces at its border that make that an edge of three: these count where the host walks. */
static struct recon_mesh walled(struct recon_mesh m)
{
    uint64_t f = m.faces, v = m.vertices;
    uint32_t seed = 2;

    m = with_room(m, 4, 8);
    for (uint64_t i = 3 * v; i < 3 * m.vertices; i++)
        m.xyz[i] = uniform(&seed);
    for (uint64_t i = f; i < m.faces; i++)
        memcpy(m.index + 3 * i, (uint32_t[]){ m.index[3 * (i - f)], m.index[3 * (i - f) + 1], (uint32_t)(v + i % 4) }, 12);
    return m;
}

static void call_and_free(struct recon_mesh m, const char *what)
{
    clean_one(&m, what);
    free_mesh(&m);
}

int agree_clean(void)
{
    uint32_t wide = agree_small ? 12 : 300;
    char name[40];

    agree_each_mesh(clean_one);
    call_and_free(soup(agree_ball(wide)), "soup");
    call_and_free(shuffled(half_turned(agree_ball(wide))), "ball, half turned");
    if (!agree_small) /* many threads join at once */
        call_and_free(shuffled(half_turned(agree_ball(1000))), "large ball, half turned");
    call_and_free(inward(agree_ball(wide)), "inward ball");
    call_and_free(both(inward(agree_ball(wide)), agree_ball(5), 0.2f), "ball in an inward ball");
    call_and_free(shuffled(flat(agree_small ? 12 : 200)), "flat balls");
    call_and_free(moebius(3 * wide), "one side");
    call_and_free(shuffled(moebius(3 * wide)), "one side, shuffled");
    call_and_free(shuffled(walled(moebius(3 * wide))), "one side with walls");
    call_and_free(both(klein(wide), half_turned(agree_ball(wide)), 4), "closed with one side, and a ball");
    call_and_free(shuffled(walled(klein(wide))), "the same with walls");
    call_and_free(book(3), "book of 3");
    call_and_free(book(agree_small ? 700 : 20000), "book");
    call_and_free(many(agree_small ? 12 : 60), "parts");
    call_and_free(shuffled(many(agree_small ? 12 : 60)), "parts, shuffled");
    for (uint32_t i = 0; i < (agree_small ? 40 : 250); i++) {
        snprintf(name, sizeof(name), "broken %u", i);
        call_and_free(broken(i), name);
    }
    return agree_told(MESH_CLEAN_NAME, &cleaned);
}
