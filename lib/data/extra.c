#include "config.h"
#include "data/extra.h"

#include <stdlib.h>

static void material_release(struct material *m)
{
    for (size_t i = 0; i < m->lines.n; i++)
        free(m->lines.v[i].text);
    free(m->lines.v);
    free(m->name);
}

static void columns_release(struct columns *c)
{
    strv_release(&c->types);
    strv_release(&c->names);
    free(c->rows);
}

void extra_free(struct extra *e)
{
    for (size_t i = 0; i < e->materials.n; i++)
        material_release(&e->materials.v[i]);
    for (size_t i = 0; i < e->images.n; i++) {
        free(e->images.v[i].name);
        free(e->images.v[i].path);
        free(e->images.v[i].bytes);
    }
    free(e->marks.v);
    free(e->materials.v);
    free(e->images.v);
    free(e->gltf);
    free(e->by_material.slot);
    free(e->by_image.slot);
    strv_release(&e->names);
    columns_release(&e->vertex);
    columns_release(&e->face);
    *e = (struct extra){ 0 };
}

bool extra_empty(const struct extra *e)
{
    return !e->marks.n && !e->materials.n && !e->images.n && !e->gltf && !e->vertex.names.n && !e->face.names.n;
}

static bool is(const char *have, const char *name, size_t n)
{
    return strncmp(have, name, n) == 0 && !have[n];
}

uint32_t extra_name(struct extra *e, const char *name, size_t n)
{
    char *copy;

    if (e->names.n && is(e->names.v[e->names.n - 1], name, n))
        return (uint32_t)e->names.n - 1;
    copy = xstrndup(name, n);
    strv_add(&e->names, copy);
    free(copy);
    return (uint32_t)e->names.n - 1;
}

static const char *material_at(const struct extra *e, uint32_t i)
{
    return e->materials.v[i].name;
}

static const char *image_at(const struct extra *e, uint32_t i)
{
    return e->images.v[i].name;
}

static size_t hash(const char *name, size_t n)
{
    uint64_t h = 14695981039346656037u; /* FNV-1a */

    for (size_t i = 0; i < n; i++)
        h = (h ^ (uint8_t)name[i]) * 1099511628211u;
    return (size_t)(h ^ h >> 32);
}

typedef const char *name_at(const struct extra *e, uint32_t i);

static void lookup_grow(const struct extra *e, struct lookup *l, name_at *at)
{
    size_t old = l->n, n = old ? 2 * old : 64;
    uint32_t *slot = xcalloc(n, sizeof(*slot));

    for (size_t i = 0; i < old; i++)
        if (l->slot[i]) {
            const char *name = at(e, l->slot[i] - 1);
            size_t k = hash(name, strlen(name)) & (n - 1);

            while (slot[k])
                k = (k + 1) & (n - 1);
            slot[k] = l->slot[i];
        }
    free(l->slot);
    l->slot = slot;
    l->n = n;
}

/* The number of the name; or *ret_new, the slot where a new one goes. */
static uint32_t lookup(const struct extra *e, struct lookup *l, name_at *at, const char *name, size_t n, uint32_t **ret_new)
{
    size_t k;

    if (2 * l->used >= l->n)
        lookup_grow(e, l, at);
    *ret_new = NULL;
    for (k = hash(name, n) & (l->n - 1); l->slot[k]; k = (k + 1) & (l->n - 1))
        if (is(at(e, l->slot[k] - 1), name, n))
            return l->slot[k] - 1;
    *ret_new = &l->slot[k];
    return 0;
}

uint32_t extra_material(struct extra *e, const char *name, size_t n)
{
    uint32_t *fresh, i = lookup(e, &e->by_material, material_at, name, n, &fresh);

    if (!fresh)
        return i;
    VEC_ADD(&e->materials)->name = xstrndup(name, n);
    e->by_material.used++;
    return (*fresh = (uint32_t)e->materials.n) - 1;
}

uint32_t extra_image(struct extra *e, const char *name, size_t n)
{
    uint32_t *fresh, i = lookup(e, &e->by_image, image_at, name, n, &fresh);

    if (!fresh)
        return i;
    VEC_ADD(&e->images)->name = xstrndup(name, n);
    e->by_image.used++;
    return (*fresh = (uint32_t)e->images.n) - 1;
}

void extra_mark(struct extra *e, uint64_t face, enum mark_kind kind, uint32_t value)
{
    for (size_t i = e->marks.n; i-- > 0 && e->marks.v[i].face == face;)
        if (e->marks.v[i].kind == (uint32_t)kind) {
            e->marks.v[i].value = value;
            return;
        }
    *VEC_ADD(&e->marks) = (struct mark){ face, (uint32_t)kind, value };
}

/* ---- packed: counts of 8 bytes, texts and bytes behind theirs ---- */

static void put_count(struct str *t, uint64_t n)
{
    str_addn(t, &n, 8);
}

static void put_bytes(struct str *t, const void *p, uint64_t n)
{
    put_count(t, n);
    if (n)
        str_addn(t, p, n);
}

static void put_text(struct str *t, const char *s)
{
    put_bytes(t, s, s ? strlen(s) + 1 : 0); /* with its NUL: NULL and "" differ */
}

static void put_texts(struct str *t, const struct strv *v)
{
    put_count(t, v->n);
    for (size_t i = 0; i < v->n; i++)
        put_text(t, v->v[i]);
}

static void put_columns(struct str *t, const struct columns *c)
{
    put_texts(t, &c->types);
    put_texts(t, &c->names);
    put_count(t, c->row);
    put_bytes(t, c->rows, c->n);
}

static void put_materials(struct str *t, const struct extra *e)
{
    put_count(t, e->materials.n);
    for (size_t i = 0; i < e->materials.n; i++) {
        const struct material *m = &e->materials.v[i];

        put_text(t, m->name);
        put_count(t, m->known);
        put_count(t, m->lines.n);
        for (size_t k = 0; k < m->lines.n; k++) {
            put_text(t, m->lines.v[k].text);
            put_count(t, m->lines.v[k].image);
        }
    }
}

int extra_pack(const struct extra *e, const struct data_alloc *alloc, struct recon_mesh *m, struct fault *fault)
{
    struct str t = { 0 };

    m->extra = NULL;
    m->extra_bytes = 0;
    if (extra_empty(e))
        return 0;
    str_addn(&t, EXTRA_MAGIC, sizeof(EXTRA_MAGIC));
    put_bytes(&t, e->marks.v, e->marks.n * sizeof(struct mark));
    put_texts(&t, &e->names);
    put_materials(&t, e);
    put_count(&t, e->images.n);
    for (size_t i = 0; i < e->images.n; i++) {
        put_text(&t, e->images.v[i].name);
        put_text(&t, e->images.v[i].path);
        put_bytes(&t, e->images.v[i].bytes, e->images.v[i].n);
    }
    put_text(&t, e->gltf);
    put_columns(&t, &e->vertex);
    put_columns(&t, &e->face);
    m->extra = alloc->alloc(alloc->self, t.len);
    if (m->extra) {
        memcpy(m->extra, t.s, t.len);
        m->extra_bytes = t.len;
    }
    str_release(&t);
    return m->extra ? 0 : fault_set(fault, CODE_MEMORY, NULL, "no memory for names, materials and properties of a mesh");
}

struct taking {
    const uint8_t *p;
    uint64_t left;
    bool bad;
};

static uint64_t take_count(struct taking *t)
{
    uint64_t n = 0;

    t->bad = t->bad || t->left < 8;
    if (t->bad)
        return 0;
    memcpy(&n, t->p, 8);
    t->p += 8;
    t->left -= 8;
    return n;
}

/* a number of things that take at least eight bytes each */
static uint64_t take_many(struct taking *t)
{
    uint64_t n = take_count(t);

    t->bad = t->bad || n > t->left / 8;
    return t->bad ? 0 : n;
}

static void *take_bytes(struct taking *t, uint64_t *ret)
{
    uint64_t n = take_count(t);
    void *p;

    *ret = 0;
    t->bad = t->bad || n > t->left;
    if (t->bad || !n)
        return NULL;
    p = xmalloc(n);
    memcpy(p, t->p, n);
    t->p += n;
    t->left -= n;
    *ret = n;
    return p;
}

static char *take_text(struct taking *t)
{
    uint64_t n;
    char *s = take_bytes(t, &n);

    if (s && s[n - 1]) {
        t->bad = true;
        s[n - 1] = 0;
    }
    return s;
}

static char *take_word(struct taking *t) /* never NULL */
{
    char *s = take_text(t);

    t->bad = t->bad || !s;
    return s ? s : xstrdup("");
}

static void take_texts(struct taking *t, struct strv *ret)
{
    for (uint64_t n = take_many(t); n-- && !t->bad;) {
        char *s = take_word(t);

        strv_add(ret, s);
        free(s);
    }
}

static void take_columns(struct taking *t, struct columns *c)
{
    take_texts(t, &c->types);
    take_texts(t, &c->names);
    c->row = take_count(t);
    c->rows = take_bytes(t, &c->n);
    t->bad = t->bad || c->types.n != c->names.n;
}

static void take_materials(struct taking *t, struct extra *e)
{
    for (uint64_t n = take_many(t); n-- && !t->bad;) {
        struct material *m = VEC_ADD(&e->materials);

        m->name = take_word(t);
        m->known = take_count(t);
        for (uint64_t k = take_many(t); k-- && !t->bad;) {
            struct statement *s = VEC_ADD(&m->lines);

            s->text = take_word(t);
            s->image = (uint32_t)take_count(t);
        }
    }
}

/* numbers that name nothing are a defect, too */
static bool consistent(const struct recon_mesh *m, const struct extra *e)
{
    uint64_t face = 0, polygons = 0;

    for (uint64_t f = 0; e->face.row && f < m->faces; f++)
        polygons += !m->joined || !m->joined[f];
    for (size_t i = 0; i < e->marks.n; i++) {
        const struct mark *k = &e->marks.v[i];

        if (k->face < face || k->kind >= MARK_KINDS ||
            (k->value != RECON_NONE && k->value >= (k->kind == MARK_MATERIAL ? e->materials.n : e->names.n)) ||
            (k->value == RECON_NONE && k->kind != MARK_MATERIAL))
            return false;
        face = k->face;
    }
    for (size_t i = 0; i < e->materials.n; i++)
        for (size_t k = 0; k < e->materials.v[i].lines.n; k++)
            if (e->materials.v[i].lines.v[k].image != RECON_NONE && e->materials.v[i].lines.v[k].image >= e->images.n)
                return false;
    return e->vertex.n == e->vertex.row * m->vertices && e->face.n == e->face.row * polygons;
}

int extra_unpack(const struct recon_mesh *m, struct extra *ret, struct err *err)
{
    struct taking t = { m->extra, m->extra ? m->extra_bytes : 0, false };
    struct extra e = { 0 };
    uint64_t n;

    *ret = e;
    if (!m->extra)
        return 0;
    t.bad = t.left < sizeof(EXTRA_MAGIC) || memcmp(t.p, EXTRA_MAGIC, sizeof(EXTRA_MAGIC));
    t.p += sizeof(EXTRA_MAGIC);
    t.left -= t.bad ? 0 : sizeof(EXTRA_MAGIC);
    e.marks.v = take_bytes(&t, &n);
    e.marks.n = e.marks.cap = n / sizeof(struct mark);
    take_texts(&t, &e.names);
    take_materials(&t, &e);
    for (uint64_t k = take_many(&t); k-- && !t.bad;) {
        struct image *p = VEC_ADD(&e.images);

        p->name = take_word(&t);
        p->path = take_text(&t);
        p->bytes = take_bytes(&t, &p->n);
    }
    e.gltf = take_text(&t);
    take_columns(&t, &e.vertex);
    take_columns(&t, &e.face);
    if (t.bad || t.left || !consistent(m, &e)) {
        extra_free(&e);
        return err_set(err, CODE_INTERNAL, "names, materials and properties of a mesh of %llu bytes are not as its reader packed them",
                       (unsigned long long)m->extra_bytes);
    }
    *ret = e;
    return 0;
}
