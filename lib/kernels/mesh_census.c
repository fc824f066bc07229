#include "config.h"
#include "base/base.h"
#include "kernels/mesh_plan.h"
#include "kernels/plan.h"
#include "kernels/tree_sum.h"

#include <math.h>
#include <stdlib.h>

static void measure(const struct recon_mesh *m, struct census *c)
{
    struct tree_sum area = { 0 }, volume = { 0 };

    for (uint64_t f = 0; f < m->faces; f++) {
        struct face_size z = face_size(m, f);

        c->degenerate += z.degenerate;
        c->zero_area += z.none;
        tree_add(&area, z.area);
        tree_add(&volume, z.volume);
    }
    c->area = tree_end(&area);
    c->volume = tree_end(&volume);
}

static void count_edges(const struct topo *t, struct census *c)
{
    for (uint32_t e = 0; e < t->edges; e++) {
        const uint32_t *h = t->half + t->first[e];
        uint32_t n = topo_count(t, e);

        c->border += n == 1;
        c->non_manifold += n > 2;
        c->turned += n == 2 && t->index[h[0]] == t->index[h[1]];
    }
    c->edges = t->edges;
}

static void count_fans(const struct topo *t, uint32_t *corner, uint8_t *fans, struct census *c)
{
    topo_fans(t, corner, fans);
    for (uint64_t v = 0; v < t->vertices; v++) {
        c->used += fans[v] > 0;
        c->split += fans[v] > 1;
    }
}

static uint64_t count_parts(const struct topo *t, uint32_t *set, uint8_t *in, bool border)
{
    uint64_t n = 0;

    memset(in, 0, t->vertices);
    for (uint32_t v = 0; v < t->vertices; v++)
        set[v] = v;
    for (uint32_t e = 0; e < t->edges; e++) {
        uint32_t h = t->half[t->first[e]];

        if (border && topo_count(t, e) != 1)
            continue;
        set_join(set, t->index[h], t->index[topo_next(h)]);
        in[t->index[h]] = in[t->index[topo_next(h)]] = 1;
    }
    for (uint32_t v = 0; v < t->vertices; v++)
        n += in[v] && set[v] == v;
    return n;
}

int mesh_census(struct recon_ctx *ctx, const struct recon_mesh *m, struct census *ret)
{
    struct census c = { .vertices = m->vertices, .faces = m->faces };
    uint64_t most = m->vertices > 3 * m->faces ? m->vertices : 3 * m->faces;
    uint32_t *numbers = NULL;
    uint8_t *bytes = NULL;
    struct topo t = { 0 };
    int rc = -1;

    if (topo_build(ctx, m, &t) || !(numbers = ctx->host->alloc(ctx, 4 * most + 4)) ||
        !(bytes = ctx->host->alloc(ctx, m->vertices + m->faces + 1)))
        goto out;
    if (topo_repeated(ctx, &t, bytes))
        goto out;
    measure(m, &c);
    count_edges(&t, &c);
    for (uint64_t f = 0; f < m->faces; f++)
        c.repeated += bytes[f];
    count_fans(&t, numbers, bytes, &c);
    c.components = count_parts(&t, numbers, bytes, false);
    c.borders = count_parts(&t, numbers, bytes, true);
    c.euler = (int64_t)c.used - (int64_t)c.edges + (int64_t)(c.faces - c.degenerate);
    *ret = c;
    rc = 0;
out:
    ctx->host->free(ctx, numbers);
    ctx->host->free(ctx, bytes);
    topo_release(ctx, &t);
    return rc;
}

int census_bound(struct recon_ctx *ctx, const void *const *in, const struct recon_value *p, struct recon_cost *cost)
{
    const struct recon_mesh *m = in[0];

    (void)ctx;
    (void)p;
    if (!m)
        return 0;
    cost->host_bytes = topo_bytes(m->vertices, m->faces) + 5 * m->vertices + 37 * m->faces + 4096;
    cost->moved_bytes = 12 * m->vertices + 60 * m->faces;
    cost->flops = 30 * m->faces;
    cost->items = m->faces;
    return 0;
}

/* ---- telling ---- */

static int write_json(struct recon_ctx *ctx, const char *file, const struct census *c)
{
    char *path = plan_output(ctx, file);
    struct err err = { 0 };
    struct str t = { 0 };
    int rc;

    if (!path)
        return -1;
#define NUMBER(name) str_addf(&t, "  \"" #name "\": %llu,\n", (unsigned long long)c->name)
    str_add(&t, "{\n");
    NUMBER(vertices);
    NUMBER(faces);
    NUMBER(used);
    NUMBER(degenerate);
    NUMBER(zero_area);
    NUMBER(repeated);
    NUMBER(edges);
    NUMBER(border);
    NUMBER(non_manifold);
    NUMBER(turned);
    NUMBER(split);
    NUMBER(components);
    NUMBER(borders);
#undef NUMBER
    str_addf(&t, "  \"euler\": %lld,\n  \"area\": %.12g,\n  \"volume\": %.12g\n}\n", (long long)c->euler, c->area, c->volume);
    rc = file_write(path, t.s, t.len, 0644, &err);
    if (rc)
        ctx->host->fail(ctx, err.code, NULL, path, "%s", err.text);
    else
        ctx->host->output(ctx, path);
    str_release(&t);
    free(path);
    return rc;
}

static int require(struct recon_ctx *ctx, const struct recon_value *p, const struct census *c)
{
    int64_t want = p[MESH_CHECK_REQUIRE].i;

    if (want >= MESH_CHECK_EDGES && c->non_manifold)
        return ctx->host->fail(ctx, CODE_DATA, "non-manifold", "mesh", "%llu edges have more than two faces, none is wanted",
                               (unsigned long long)c->non_manifold);
    if (want >= MESH_CHECK_MANIFOLD && (c->split || c->turned))
        return ctx->host->fail(ctx, CODE_DATA, "non-manifold", "mesh",
                               "%llu vertices join more than one fan and at %llu edges the faces are turned against each other, none is wanted",
                               (unsigned long long)c->split, (unsigned long long)c->turned);
    if (want >= MESH_CHECK_CLOSED && (c->border || c->edges == 0))
        return ctx->host->fail(ctx, CODE_DATA, "non-manifold", "mesh", "%llu of %llu edges are a border, none is wanted",
                               (unsigned long long)c->border, (unsigned long long)c->edges);
    return 0;
}

int census_report(struct recon_ctx *ctx, const struct recon_value *p, const struct census *c)
{
    ctx->host->log(ctx, RECON_NOTE, NULL, "mesh", "%llu vertices, %llu edges, %llu faces, Euler characteristic %lld, %llu components, %llu borders",
                   (unsigned long long)c->used, (unsigned long long)c->edges, (unsigned long long)(c->faces - c->degenerate),
                   (long long)c->euler, (unsigned long long)c->components, (unsigned long long)c->borders);
    if (c->used < c->vertices)
        ctx->host->log(ctx, RECON_NOTE, NULL, "mesh", "%llu vertices are in no face", (unsigned long long)(c->vertices - c->used));
    if (c->non_manifold || c->split || c->turned)
        ctx->host->log(ctx, RECON_WARN, "non-manifold", "mesh",
                       "%llu edges have more than two faces, %llu vertices join more than one fan, at %llu edges the faces are turned "
                       "against each other",
                       (unsigned long long)c->non_manifold, (unsigned long long)c->split, (unsigned long long)c->turned);
    if (c->degenerate || c->zero_area || c->repeated)
        ctx->host->log(ctx, RECON_WARN, "face-degenerate", "mesh", "%llu faces name a vertex twice, %llu have no area, %llu are repeated",
                       (unsigned long long)c->degenerate, (unsigned long long)c->zero_area, (unsigned long long)c->repeated);
    if (c->edges && !c->border && !c->non_manifold && !c->turned && c->volume < 0)
        ctx->host->log(ctx, RECON_WARN, "inward-normals", "mesh", "the closed mesh has a volume of %.6g: its faces look inward", c->volume);
    if (p[MESH_CHECK_FILE].s[0] && write_json(ctx, p[MESH_CHECK_FILE].s, c))
        return -1;
    return require(ctx, p, c);
}

int census_selftest(struct recon_ctx *ctx, const struct recon_kernel *k, const struct recon_device *device)
{
    static const struct recon_value p[] = { [MESH_CHECK_FILE] = { .s = "" }, [MESH_CHECK_REQUIRE] = { .i = MESH_CHECK_CLOSED } };
    float xyz[3 * OCTA_V];
    uint32_t index[3 * OCTA_F];
    struct recon_mesh m = { .vertices = OCTA_V, .faces = OCTA_F, .xyz = xyz, .index = index };
    struct recon_cost cost = { 0 };

    golden_octahedron(xyz, index);
    if (golden_run(ctx, k, device, (const void *[]){ &m, NULL }, p, (void *[]){ NULL }, &cost))
        return -1;
    return cost.items == OCTA_F ? 0 : ctx->host->fail(ctx, CODE_INTERNAL, NULL, k->name, "self-test of '%s': not all faces are seen", k->name);
}
