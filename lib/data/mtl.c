#include "config.h"
#include "data/geom.h"
#include "data/mtl.h"

#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

/* ---- statements ---- */

static const struct statement_row {
    const char *word;
    int least, most; /* numbers; 0, 0: a picture */
} statements[] = {
    { "Ka", 1, 3 }, { "Kd", 1, 3 },  { "Ks", 1, 3 },  { "Ke", 1, 3 },  { "Tf", 1, 3 },        { "Ns", 1, 1 },    { "Ni", 1, 1 },
    { "d", 1, 1 },  { "Tr", 1, 3 },  { "illum", 1, 1 }, { "sharpness", 1, 1 }, { "Pr", 1, 1 }, { "Pm", 1, 1 },  { "Ps", 1, 3 },
    { "Pc", 1, 1 }, { "Pcr", 1, 1 }, { "aniso", 1, 1 }, { "anisor", 1, 1 },
    { "map_Ka", 0, 0 },  { "map_Kd", 0, 0 },  { "map_Ks", 0, 0 },   { "map_Ke", 0, 0 },   { "map_Ns", 0, 0 }, { "map_d", 0, 0 },
    { "map_Tr", 0, 0 },  { "map_opacity", 0, 0 }, { "map_bump", 0, 0 }, { "map_Bump", 0, 0 }, { "bump", 0, 0 }, { "disp", 0, 0 },
    { "map_disp", 0, 0 }, { "decal", 0, 0 },  { "map_decal", 0, 0 }, { "norm", 0, 0 },    { "map_Pr", 0, 0 }, { "map_Pm", 0, 0 },
    { "map_Ps", 0, 0 },  { "map_refl", 0, 0 }, { "refl", 0, 0 },
};

/* options of pictures: how many words follow; of numbers the later ones may be left out */
static const struct {
    const char *word;
    int least, most;
} options[] = {
    { "-blendu", 1, 1 }, { "-blendv", 1, 1 },  { "-cc", 1, 1 }, { "-clamp", 1, 1 }, { "-colorspace", 1, 1 }, { "-imfchan", 1, 1 }, { "-type", 1, 1 },
    { "-bm", 1, 1 },     { "-boost", 1, 1 },   { "-mm", 2, 2 }, { "-o", 1, 3 },     { "-s", 1, 3 },          { "-t", 1, 3 },       { "-texres", 1, 1 },
};

struct parse {
    const char *path, *prefix;
    uint64_t line;
    struct extra *e;
    struct material *now; /* NULL: before the first; the lines of a second definition go to none */
    bool none;
    uint64_t again;
    struct fault *fault;
};

static int bad(const struct parse *s, const char *word, size_t n, const char *what)
{
    return fault_set(s->fault, CODE_DATA, NULL, "'%s' line %llu: '%.*s' %s; keep = geometry reads the mesh without its materials", s->path,
                     (unsigned long long)s->line, (int)(n < 40 ? n : 40), word, what);
}

static const char *word_end(const char *p, const char *end)
{
    while (p < end && !is_blank(*p))
        p++;
    return p;
}

static bool word_is(const char *p, const char *e, const char *word)
{
    return (size_t)(e - p) == strlen(word) && memcmp(p, word, (size_t)(e - p)) == 0;
}

/* whether a whole word is a number; *p moves behind it then */
static bool number(const char **p, const char *end, double *ret)
{
    const char *q = skip_blank(*p, end);

    if (!number_read(&q, end, ret) || !(q >= end || is_blank(*q)) || !isfinite(*ret))
        return false;
    *p = q;
    return true;
}

static int check_numbers(const struct parse *s, const char *word, size_t word_n, const char *p, const char *end, const struct statement_row *row)
{
    const char *q = skip_blank(p, end), *e = word_end(q, end);
    double v;
    int n = 0;

    if (row->most == 3 && (word_is(q, e, "spectral") || word_is(q, e, "xyz"))) /* kept, given no meaning */
        return 0;
    if (str_eq(row->word, "d") && word_is(q, e, "-halo"))
        p = e;
    while (n < row->most && number(&p, end, &v))
        n++;
    p = skip_blank(p, end);
    if (n < row->least || (p < end && *p != '#')) {
        char what[60];

        snprintf(what, sizeof(what), row->least == row->most ? "needs %d finite number%s" : "needs %d finite number%s, or three", row->least,
                 plural((uint64_t)row->least));
        return bad(s, word, word_n, what);
    }
    return 0;
}

/* behind the options of a picture; NULL: an option is cut off */
static const char *skip_options(const char *p, const char *end)
{
    for (;;) {
        const char *q = p = skip_blank(p, end), *e = word_end(p, end);
        size_t i = 0;
        double v;
        int n;

        while (i < COUNT(options) && !word_is(q, e, options[i].word))
            i++;
        if (i == COUNT(options))
            return p;
        p = e;
        for (n = 0; n < options[i].least; n++) {
            q = skip_blank(p, end);
            p = word_end(q, end);
            if (p == q)
                return NULL;
        }
        for (; n < options[i].most && number(&p, end, &v); n++)
            ;
    }
}

static int take_picture(struct parse *s, const char *line, size_t word_n, const char *end)
{
    const char *name = skip_options(line + word_n, end), *before = name;
    struct statement *t;
    char *full;

    if (!name || name == end)
        return bad(s, line, word_n, "names no picture");
    if (s->none)
        return 0;
    while (before > line && is_blank(before[-1]))
        before--;
    full = xasprintf("%s%.*s", *name == '/' ? "" : s->prefix, (int)(end - name), name);
    t = VEC_ADD(&s->now->lines);
    t->text = xstrndup(line, (size_t)(before - line));
    t->image = extra_image(s->e, full, strlen(full));
    free(full);
    return 0;
}

static int begin(struct parse *s, const char *p, const char *end)
{
    uint32_t i;

    p = skip_blank(p, end);
    if (p == end)
        return bad(s, "newmtl", 6, "has no name");
    i = extra_material(s->e, p, (size_t)(end - p));
    s->now = &s->e->materials.v[i];
    s->none = s->now->known;
    s->again += s->none;
    s->now->known = true;
    return 0;
}

/* one line without blanks around it */
static int statement(struct parse *s, const char *p, const char *end)
{
    const char *e = word_end(p, end);
    size_t n = (size_t)(e - p), i = 0;

    if (p == end || *p == '#')
        return 0;
    if (word_is(p, e, "newmtl"))
        return begin(s, e, end);
    while (i < COUNT(statements) && !word_is(p, e, statements[i].word))
        i++;
    if (!s->now)
        return i < COUNT(statements) ? bad(s, p, n, "stands before any newmtl") : 0;
    if (i < COUNT(statements) && !statements[i].most)
        return take_picture(s, p, n, end);
    if (i < COUNT(statements) && check_numbers(s, p, n, e, end, &statements[i]))
        return -1;
    if (!s->none) {
        struct statement *t = VEC_ADD(&s->now->lines);

        t->text = xstrndup(p, (size_t)(end - p));
        t->image = RECON_NONE;
    }
    return 0;
}

int mtl_parse(const char *path, const char *prefix, const char *text, size_t n, struct extra *e, uint64_t *ret_again, struct fault *fault)
{
    struct parse s = { .path = path, .prefix = prefix, .line = 1, .e = e, .fault = fault };
    const char *end = text + n;

    for (const char *p = text, *q; p < end; p = q + 1, s.line++) {
        const char *a = p, *b;

        q = memchr(p, '\n', (size_t)(end - p));
        q = q ? q : end;
        a = skip_blank(a, q);
        for (b = q; b > a && is_blank(b[-1]); b--)
            ;
        if (b - a > 4096)
            return bad(&s, a, 20, "is a line longer than 4096 bytes");
        if (memchr(a, 0, (size_t)(b - a)))
            return bad(&s, a, 20, "is a line with a NUL in it");
        if (statement(&s, a, b))
            return -1;
    }
    *ret_again = s.again;
    return 0;
}

/* ---- files that a file names ---- */

enum found { FOUND, MISSING, OUTSIDE };

/* a backslash is what Windows has between folders */
static enum found find(const struct mtl_place *at, const char *name, char **ret)
{
    char *root = path_absolute(at->root), *joined = path_join(at->folder, name), *full = path_absolute(joined);
    size_t n = strlen(root);
    enum found f = OUTSIDE;
    struct stat st;

    if (strncmp(full, root, n) == 0 && (full[n] == '/' || str_eq(root, "/")))
        f = stat(full, &st) == 0 && S_ISREG(st.st_mode) ? FOUND : MISSING;
    if (f == FOUND)
        *ret = full;
    else
        free(full);
    free(joined);
    free(root);
    if (f == MISSING && strchr(name, '\\')) {
        char *other = xstrdup(name);

        for (char *p = other; *p; p++)
            *p = *p == '\\' ? '/' : *p;
        f = find(at, other, ret);
        free(other);
    }
    return f;
}

static void tell(const struct mtl_place *at, const char *rule, const char *name, enum found f, const char *what, const char *then)
{
    char *text, *fine;

    if (!at->warn || f == FOUND)
        return;
    fine = esc_terminal(name);
    text = xasprintf("%s '%.200s' %s; %s", what, fine, f == MISSING ? "is not there" : "lies outside the dataset's folder and is not followed", then);
    at->warn(at->self, rule, fine, text);
    free(text);
    free(fine);
}

static int read_library(const struct mtl_place *at, const char *name, const char *path, struct extra *e, struct fault *fault)
{
    const char *base = path_base(name);
    char *prefix = xstrndup(name, (size_t)(base - name));
    struct str t = { 0 };
    uint64_t again = 0;
    int rc = data_slurp(path, MTL_MAX, &t, fault);

    if (rc == 0)
        rc = mtl_parse(path, prefix, t.s ? t.s : "", t.len, e, &again, fault);
    if (rc == 0 && again && at->warn) {
        char *text = xasprintf("'%s' defines %llu material%s again: the first definition counts", path, (unsigned long long)again, plural(again));

        at->warn(at->self, NULL, path, text);
        free(text);
    }
    str_release(&t);
    free(prefix);
    return rc;
}

static int one_library(const struct mtl_place *at, const char *name, struct extra *e, struct fault *fault)
{
    char *path = NULL;
    enum found f = find(at, name, &path);
    int rc = f == FOUND ? read_library(at, name, path, e, fault) : 0;

    tell(at, "texture-missing", name, f, "the library of materials", "its materials are unknown");
    free(path);
    return rc;
}

int mtl_libraries(const struct mtl_place *at, const char *names, struct extra *e, struct fault *fault)
{
    struct strv words = { 0 };
    char *path = NULL;
    int rc = 0;

    if (find(at, names, &path) == FOUND) {
        rc = read_library(at, names, path, e, fault);
        free(path);
        return rc;
    }
    strv_split(&words, names, " \t");
    for (size_t i = 0; rc == 0 && i < words.n; i++)
        if (*words.v[i])
            rc = one_library(at, words.v[i], e, fault);
    strv_release(&words);
    return rc;
}

void mtl_find_images(const struct mtl_place *at, struct extra *e)
{
    enum { TOLD_MOST = 20 };
    size_t told = 0;

    for (size_t i = 0; i < e->images.n; i++) {
        struct image *p = &e->images.v[i];
        enum found f = p->path || p->bytes || !*p->name ? FOUND : find(at, p->name, &p->path);

        told += f != FOUND;
        if (told <= TOLD_MOST)
            tell(at, "texture-missing", p->name, f, "the texture", "its name is kept as it stands");
    }
    if (told > TOLD_MOST && at->warn) {
        char *text = xasprintf("%zu more textures are not there or outside", told - TOLD_MOST);

        at->warn(at->self, "texture-missing", "textures", text);
        free(text);
    }
}

/* ---- meanings ---- */

static const struct statement *line_of(const struct material *m, const char *word)
{
    size_t n = strlen(word);

    for (size_t i = m->lines.n; i-- > 0;) /* the last one counts */
        if (strncmp(m->lines.v[i].text, word, n) == 0 && (!m->lines.v[i].text[n] || is_blank(m->lines.v[i].text[n])))
            return &m->lines.v[i];
    return NULL;
}

bool mtl_values(const struct material *m, const char *word, double *v, int n)
{
    const struct statement *s = line_of(m, word);
    const char *p, *end;
    int k = 0;

    if (!s)
        return false;
    p = s->text + strlen(word);
    end = p + strlen(p);
    while (k < n && number(&p, end, &v[k]))
        k++;
    for (int i = k; k && i < n; i++) /* "Kd 0.5" is grey */
        v[i] = v[0];
    return k > 0;
}

uint32_t mtl_image(const struct material *m, const char *word)
{
    const struct statement *s = line_of(m, word);

    return s ? s->image : RECON_NONE;
}
