/* What a mesh file says of faces, for a mesh that gets more of them: packed as it is, but for marks and rows that come behind. */
#include "config.h"
#include "data/extra.h"

enum { BLOCK = 1024 }; /* faces over which polygons are counted at once */

/* Where things stand in the packed bytes (extra.c). */
struct packed {
    const uint8_t *p;
    uint64_t bytes, at;
    bool bad;
    const struct mark *mark;
    uint64_t marks, marks_end; /* how many; where the next thing begins */
    uint64_t face;             /* where the columns of faces begin, which are the last thing */
    uint64_t row, rows;        /* bytes of one; where they begin */
};

static uint64_t count_at(struct packed *x)
{
    uint64_t n = 0;

    x->bad = x->bad || x->bytes - x->at < 8;
    if (x->bad)
        return 0;
    memcpy(&n, x->p + x->at, 8);
    x->at += 8;
    return n;
}

static void pass(struct packed *x)
{
    uint64_t n = count_at(x);

    x->bad = x->bad || n > x->bytes - x->at;
    x->at += x->bad ? 0 : n;
}

static void pass_texts(struct packed *x)
{
    for (uint64_t n = count_at(x); n-- && !x->bad;)
        pass(x);
}

static void pass_materials(struct packed *x)
{
    for (uint64_t n = count_at(x); n-- && !x->bad;) {
        pass(x);
        count_at(x);
        for (uint64_t k = count_at(x); k-- && !x->bad;) {
            pass(x);
            count_at(x);
        }
    }
}

static void pass_images(struct packed *x)
{
    for (uint64_t n = count_at(x); n-- && !x->bad;)
        for (int i = 0; i < 3; i++)
            pass(x);
}

/* types, names; gives a row's bytes, and x->at where the rows' own count stands */
static uint64_t pass_names(struct packed *x)
{
    pass_texts(x);
    pass_texts(x);
    return count_at(x);
}

static bool look(const struct recon_mesh *m, struct packed *x)
{
    *x = (struct packed){ .p = m->extra, .bytes = m->extra_bytes, .at = sizeof(EXTRA_MAGIC) };
    if (x->bytes < x->at || memcmp(x->p, EXTRA_MAGIC, sizeof(EXTRA_MAGIC)))
        return false;
    x->marks = count_at(x) / sizeof(struct mark);
    x->mark = (const struct mark *)(const void *)(x->p + x->at);
    x->at -= x->bad ? 0 : 8;
    pass(x);
    x->marks_end = x->at;
    pass_texts(x);
    pass_materials(x);
    pass_images(x);
    pass(x);
    pass_names(x);
    pass(x);
    x->face = x->at;
    x->row = pass_names(x);
    x->rows = x->at + 8;
    pass(x);
    return !x->bad && x->at == x->bytes;
}

/* ---- marks ---- */

/* What holds: a value a kind, RECON_NONE before the first. */
struct state {
    uint32_t of[MARK_KINDS];
};

/* after[i]: what holds from mark i on, after[0] before all; the last mark at a face counts */
static void follow(const struct packed *x, struct state *after)
{
    memset(after, 0xff, sizeof(*after));
    for (uint64_t i = 0; i < x->marks; i++) {
        after[i + 1] = after[i];
        after[i + 1].of[x->mark[i].kind % MARK_KINDS] = x->mark[i].value;
    }
}

static const struct state *state_at(const struct packed *x, const struct state *after, uint64_t face)
{
    uint64_t low = 0, high = x->marks; /* how many marks stand at or before face */

    while (low < high) {
        uint64_t mid = low + (high - low) / 2;

        if (x->mark[mid].face <= face)
            low = mid + 1;
        else
            high = mid;
    }
    return &after[low];
}

/* Marks of the runs behind `faces` faces, into to (NULL: counted); an object or a group once begun has no end but another. */
static uint64_t mark_more(const struct packed *x, const struct state *after, uint64_t faces, const struct mesh_run *run, uint64_t runs, struct mark *to)
{
    static const enum mark_kind order[MARK_KINDS] = { MARK_OBJECT, MARK_GROUP, MARK_SMOOTH, MARK_MATERIAL };
    struct state now = after[x->marks];
    uint64_t k = 0;

    for (uint64_t i = 0; i < runs; faces += run[i++].faces) {
        const struct state *like = state_at(x, after, run[i].like);

        for (int j = 0; j < MARK_KINDS; j++) {
            uint32_t value = like->of[order[j]];

            if (value == now.of[order[j]] || (value == RECON_NONE && order[j] != MARK_MATERIAL))
                continue;
            now.of[order[j]] = value;
            if (to)
                to[k] = (struct mark){ faces, (uint32_t)order[j], value };
            k++;
        }
    }
    return k;
}

/* ---- rows ---- */

/* before[b]: polygons that begin before block b of faces; gives all */
static uint64_t count_polygons(const struct recon_mesh *m, uint64_t *before)
{
    uint64_t n = 0;

    for (uint64_t f = 0; f < m->faces; f++) {
        if (f % BLOCK == 0)
            before[f / BLOCK] = n;
        n += !m->joined || !m->joined[f];
    }
    return n;
}

static uint64_t polygon_of(const struct recon_mesh *m, const uint64_t *before, uint64_t face)
{
    uint64_t n = before[face / BLOCK];

    for (uint64_t f = face / BLOCK * BLOCK; f <= face; f++)
        n += !m->joined || !m->joined[f];
    return n ? n - 1 : 0;
}

/* ---- the whole ---- */

static uint8_t *put(uint8_t *to, const void *from, uint64_t n)
{
    if (n)
        memcpy(to, from, n);
    return to + n;
}

static uint8_t *put_number(uint8_t *to, uint64_t n)
{
    return put(to, &n, 8);
}

/* What stands behind the marks, but columns of faces. */
static void put_without_rows(uint8_t *to, const struct packed *x)
{
    to = put(to, x->p + x->marks_end, x->face - x->marks_end);
    for (int i = 0; i < 4; i++) /* no types, no names, rows of nothing, none */
        to = put_number(to, 0);
}

/* The same with them, and rows of n faces more. */
static void put_rows(uint8_t *to, const struct packed *x, const struct recon_mesh *m, const uint64_t *before, const struct mesh_run *run, uint64_t runs,
                     uint64_t n)
{
    to = put(to, x->p + x->marks_end, x->rows - 8 - x->marks_end);
    to = put_number(to, x->bytes - x->rows + x->row * n);
    to = put(to, x->p + x->rows, x->bytes - x->rows);
    for (uint64_t i = 0; x->row && i < runs; i++) {
        const uint8_t *like = x->p + x->rows + x->row * polygon_of(m, before, run[i].like);

        for (uint32_t k = 0; k < run[i].faces; k++)
            to = put(to, like, x->row);
    }
}

uint64_t mesh_extra_bytes(uint64_t bytes, uint64_t faces, uint64_t runs, uint64_t *ret_meanwhile)
{
    *ret_meanwhile = bytes ? bytes + sizeof(struct state) + 8 * (faces / BLOCK + 1) : 0;
    return bytes ? 2 * bytes + MARK_KINDS * sizeof(struct mark) * runs : 0;
}

int mesh_extra_grow(const struct recon_mesh *m, const struct mesh_run *run, uint64_t runs, const struct data_alloc *alloc, struct recon_mesh *ret,
                    bool *ret_left, struct fault *fault)
{
    struct packed x;
    struct state *after = NULL;
    uint64_t *before = NULL, n = 0, more, bytes, polygons;
    uint8_t *to = NULL;
    bool rows;

    if (!look(m, &x))
        return fault_set(fault, CODE_INTERNAL, NULL, "names, materials and properties of a mesh of %llu bytes are not as its reader packed them",
                         (unsigned long long)m->extra_bytes);
    if (!(after = alloc->alloc(alloc->self, sizeof(*after) * (x.marks + 1))) || !(before = alloc->alloc(alloc->self, 8 * (m->faces / BLOCK + 1))))
        goto out;
    for (uint64_t i = 0; i < runs; i++)
        n += run[i].faces;
    follow(&x, after);
    polygons = count_polygons(m, before);
    rows = x.row == 0 || (n <= polygons && x.bytes - x.rows == x.row * polygons);
    more = mark_more(&x, after, m->faces, run, runs, NULL);
    bytes = x.bytes + more * sizeof(struct mark) + (rows ? x.row * n : 32 - (x.bytes - x.face));
    if (!(to = alloc->alloc(alloc->self, bytes)))
        goto out;
    ret->extra = to;
    ret->extra_bytes = bytes;
    *ret_left = !rows;
    to = put(to, EXTRA_MAGIC, sizeof(EXTRA_MAGIC));
    to = put_number(to, (x.marks + more) * sizeof(struct mark));
    to = put(to, x.mark, x.marks * sizeof(struct mark));
    mark_more(&x, after, m->faces, run, runs, (struct mark *)(void *)to);
    to += more * sizeof(struct mark);
    if (rows)
        put_rows(to, &x, m, before, run, runs, n);
    else
        put_without_rows(to, &x);
out:
    alloc->free(alloc->self, after);
    alloc->free(alloc->self, before);
    return to ? 0 : fault_set(fault, CODE_MEMORY, NULL, "no memory for names, materials and properties of a mesh");
}
