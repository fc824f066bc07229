/* What objects may open by dlopen. `.note.dlopen`: the UAPI group's "Package Metadata for dlopen", note 0x407c0c0a of
 * owner FDO, a JSON array of {"soname": [...], "feature": "...", "priority": "..."}. Library names in read-only text: a
 * guess, made only where the object imports dlopen. */
#include "config.h"

#include <ctype.h>
#include <stdlib.h>
#include <unistd.h>
#include <elf.h>
#include "elf/symbols_priv.h"

#define NOTE_DLOPEN 0x407c0c0au
#define NOTES_MAX 65536
#define ROWS_MAX 65536
#define TEXT_MAX ((uint64_t)64 << 20) /* of read-only data that is looked through */
#define NAME_LEN_MAX 128
#define MAYBES_MAX 256                /* of one object */

struct file {
    struct reader r;
    bool wide;
    struct maybes *out;
    size_t object, first; /* what is new begins at out[first] */
};

static bool knows(const struct file *f, const char *name)
{
    for (size_t i = f->first; i < f->out->n; i++)
        if (strv_has(&f->out->v[i].names, name))
            return true;
    return f->out->n - f->first >= MAYBES_MAX;
}

/* ---- the note's JSON: texts and lists of texts are read, the rest ends the reading ---- */

struct json { const char *p, *end; };

static bool json_is(struct json *j, char c)
{
    while (j->p < j->end && isspace((unsigned char)*j->p))
        j->p++;
    if (j->p >= j->end || *j->p != c)
        return false;
    j->p++;
    return true;
}

/* NULL: no text is here. Owned. Escapes stand for the character that follows, which names of libraries do not need. */
static char *json_text(struct json *j)
{
    struct str t = { 0 };

    if (!json_is(j, '"'))
        return NULL;
    for (; j->p < j->end && *j->p != '"'; j->p++) {
        if (*j->p == '\\' && ++j->p >= j->end)
            break;
        str_addn(&t, j->p, 1);
    }
    if (!json_is(j, '"'))
        str_release(&t);
    else
        str_add(&t, "");
    return t.s ? str_take(&t) : NULL;
}

static void json_texts(struct json *j, struct strv *ret)
{
    char *s;

    do {
        s = json_text(j);
        if (s && *s && ret->n < 16)
            strv_add(ret, s);
        free(s);
    } while (s && json_is(j, ','));
}

static bool json_member(struct json *j, struct maybe *m)
{
    char *key = json_text(j), *value = NULL;
    bool ok = key && json_is(j, ':');

    if (ok && json_is(j, '[')) {
        struct strv list = { 0 };

        json_texts(j, &list);
        ok = json_is(j, ']');
        if (str_eq(key, "soname"))
            strv_copy(&m->names, &list);
        strv_release(&list);
    } else if (ok) {
        value = json_text(j);
        ok = value;
        if (ok && str_eq(key, "feature") && !m->feature) {
            m->feature = value;
            value = NULL;
        } else if (ok && str_eq(key, "priority") && !m->priority) {
            m->priority = value;
            value = NULL;
        }
    }
    free(value);
    free(key);
    return ok;
}

static void maybe_release(struct maybe *m)
{
    strv_release(&m->names);
    free(m->feature);
    free(m->priority);
    free(m->path);
}

static void read_json(struct file *f, const char *s, size_t n)
{
    struct json j = { s, s + n };
    bool more = json_is(&j, '[');

    while (more && json_is(&j, '{')) {
        struct maybe m = { .object = f->object, .noted = true };
        bool ok;

        do
            ok = json_member(&j, &m);
        while (ok && json_is(&j, ','));
        more = ok && json_is(&j, '}') && json_is(&j, ',');
        if (m.names.n && !knows(f, m.names.v[0]))
            *VEC_ADD(f->out) = m;
        else
            maybe_release(&m);
    }
}

static void read_notes(struct file *f, uint64_t off, uint64_t n)
{
    while (n >= 12 && n <= NOTES_MAX) {
        const uint8_t *h = reader_at(&f->r, off, 12);
        uint64_t name, desc, whole;
        uint32_t type;

        if (!h)
            return;
        name = get32(h);
        desc = get32(h + 4);
        type = get32(h + 8);
        whole = 12 + ((name + 3) & ~UINT64_C(3)) + ((desc + 3) & ~UINT64_C(3));
        if (name == 4 && type == NOTE_DLOPEN && desc <= READER_MAX && whole <= n + 3) {
            h = reader_at(&f->r, off + 12, 4);
            h = h && !memcmp(h, "FDO", 4) ? reader_at(&f->r, off + 16, (size_t)desc) : NULL;
            if (h)
                read_json(f, (const char *)h, strnlen((const char *)h, (size_t)desc));
        }
        if (whole >= n)
            return;
        off += whole;
        n -= whole;
    }
}

/* ---- names in read-only text ---- */

/* "libcudnn_ops.so.9": a whole text that is a library's name. */
static bool is_library(const char *s, size_t n)
{
    const char *so;

    if (n < 7 || n > NAME_LEN_MAX || strncmp(s, "lib", 3))
        return false;
    for (size_t i = 3; i < n; i++)
        if (!isalnum((unsigned char)s[i]) && !strchr("_-+.", s[i]))
            return false;
    so = memmem(s + 3, n - 3, ".so", 3);
    if (!so || so == s + 3)
        return false;
    for (so += 3; so < s + n; so++)
        if (*so != '.' && !isdigit((unsigned char)*so))
            return false;
    return s[n - 1] != '.';
}

static void take_name(struct file *f, const char *s, size_t n)
{
    char name[NAME_LEN_MAX + 1];

    if (!is_library(s, n))
        return;
    memcpy(name, s, n);
    name[n] = '\0';
    if (!knows(f, name)) {
        struct maybe *m = VEC_ADD(f->out);

        m->object = f->object;
        strv_add(&m->names, name);
    }
}

/* Texts of the bytes at off, each from one NUL to the next. */
static void read_text(struct file *f, uint64_t off, uint64_t n)
{
    char name[NAME_LEN_MAX + 1];
    size_t len = 0; /* of the text so far; one that is longer than any name is passed */

    if (n > TEXT_MAX)
        n = TEXT_MAX;
    while (n) {
        size_t part = n < READER_MAX ? (size_t)n : READER_MAX;
        const uint8_t *p = reader_at(&f->r, off, part);

        if (!p)
            return;
        for (size_t i = 0; i < part; i++) {
            if (p[i] && len < sizeof(name))
                name[len++] = (char)p[i];
            if (!p[i]) {
                take_name(f, name, len);
                len = 0;
            }
        }
        off += part;
        n -= part;
    }
}

/* ---- the tables of headers ---- */

struct table { uint64_t off; size_t entry, n, type, at, size; }; /* type, at, size: where these stand in an entry */

static uint64_t word(const struct file *f, const uint8_t *p)
{
    return f->wide ? get64(p) : get32(p);
}

static void each_note(struct file *f, const struct table *t)
{
    for (size_t i = 0; i < t->n; i++) {
        const uint8_t *p = reader_at(&f->r, t->off + i * t->entry, t->entry);

        if (!p)
            return;
        if (get32(p + t->type) == PT_NOTE)
            read_notes(f, word(f, p + t->at), word(f, p + t->size));
    }
}

static void each_rodata(struct file *f, const struct table *t, size_t strings)
{
    const uint8_t *p = strings < t->n ? reader_at(&f->r, t->off + strings * t->entry, t->entry) : NULL;
    uint64_t names = p ? word(f, p + t->at) : 0, end = p ? names + word(f, p + t->size) : 0;

    for (size_t i = 0; end > names && i < t->n; i++) {
        uint64_t at, size;
        char *name;

        p = reader_at(&f->r, t->off + i * t->entry, t->entry);
        if (!p)
            return;
        if (get32(p + t->type) != SHT_PROGBITS)
            continue;
        at = word(f, p + t->at);
        size = word(f, p + t->size);
        name = reader_string(&f->r, names + get32(p), end);
        if (name && str_starts(name, ".rodata"))
            read_text(f, at, size);
        free(name);
    }
}

void object_maybe(const struct object *o, bool text, size_t object, struct maybes *ret)
{
    struct file f = { .out = ret, .object = object, .first = ret->n, .wide = o->elfclass == ELFCLASS64 };
    const char *what = NULL;
    struct stat st;
    int fd = o->path && !o->big_endian ? open_calmly(o->path, &st, &what) : -1;
    struct table phdrs, shdrs;
    const uint8_t *h = NULL;
    size_t strings = 0;

    if (fd >= 0 && !what) {
        reader_init(&f.r, fd, (uint64_t)st.st_size);
        h = reader_at(&f.r, 0, f.wide ? 64 : 52);
    }
    if (h && f.wide) {
        phdrs = (struct table){ get64(h + 32), sizeof(Elf64_Phdr), get16(h + 56), 0, 8, 32 };
        shdrs = (struct table){ get64(h + 40), sizeof(Elf64_Shdr), get16(h + 60), 4, 24, 32 };
        strings = get16(h + 62);
    } else if (h) {
        phdrs = (struct table){ get32(h + 28), sizeof(Elf32_Phdr), get16(h + 44), 0, 4, 16 };
        shdrs = (struct table){ get32(h + 32), sizeof(Elf32_Shdr), get16(h + 48), 4, 16, 20 };
        strings = get16(h + 50);
    }
    if (h)
        each_note(&f, &phdrs);
    if (h && text)
        each_rodata(&f, &shdrs, strings);
    if (fd >= 0)
        close(fd);
}

/* ---- a closure ---- */

static bool imports_dlopen(struct symbols *s, const struct object *o)
{
    const struct symtab *t = symtab_of(s, o);
    struct symbol x;

    for (size_t i = 1; symtab_symbol(t, i, &x); i++)
        if (x.section == SHN_UNDEF && (str_eq(symtab_name(t, x.name), "dlopen") ||
                                       str_eq(symtab_name(t, x.name), "dlmopen")))
            return true;
    return false;
}

static bool loaded(const struct closure *c, const char *name)
{
    for (size_t i = 0; i < c->libs.n; i++)
        if (str_eq(c->libs.v[i].soname, name) || str_eq(c->libs.v[i].object.soname, name))
            return true;
    return false;
}

static bool told(const struct maybes *l, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (strv_has(&l->v[i].names, name))
            return true;
    return false;
}

/* What of l[first] and later is new; the rest goes. */
static void only_new(const struct closure *c, const struct closure *scope, struct maybes *l, size_t first)
{
    size_t n = first;

    for (size_t i = first; i < l->n; i++) {
        bool known = false;

        for (size_t k = 0; k < l->v[i].names.n && !known; k++)
            known = loaded(c, l->v[i].names.v[k]) || (scope && loaded(scope, l->v[i].names.v[k]));
        if (known || told(l, n, l->v[i].names.v[0]))
            maybe_release(&l->v[i]);
        else
            l->v[n++] = l->v[i];
    }
    l->n = n;
}

void closure_maybe(struct symbols *s, const struct closure *c, const struct closure *scope, char *const *env,
                   const char *cwd, const struct loader *l, struct maybes *ret)
{
    size_t first = ret->n;

    for (size_t i = c->main; i < c->libs.n; i++) {
        const struct library *lib = &c->libs.v[i];

        if (lib->object.path && !lib->corrupt && lib->why != WHY_LOADED)
            object_maybe(&lib->object, imports_dlopen(s, &lib->object), i, ret);
    }
    only_new(c, scope, ret, first);
    if (ret->n > first)
        search_for_maybes(c, scope, env, cwd, l, ret, first);
}

void maybes_release(struct maybes *l)
{
    for (size_t i = 0; i < l->n; i++)
        maybe_release(&l->v[i]);
    free(l->v);
    memset(l, 0, sizeof(*l));
}
