/* Which compiled modules `import PACKAGE` loads, by the text of its Python files: statements at the outermost level are
 * followed in their order, those in functions, classes and `if` are not (but below its `else`), those in `try` only where the
 * handler raises. Sources:
 * The Python Language Reference 5 (the import system), 2.1 (logical lines). */
#include "config.h"

#include <dirent.h>
#include <search.h>
#include <stdlib.h>
#include "pin/pin_priv.h"

#define FILES_MAX 20000   /* of one walk */
#define DEPTH_MAX 4000    /* imports within imports */
#define TEXT_MAX ((size_t)16 << 20)

struct folder { /* names in a directory, sorted; none: it is no directory */
    char *path;
    struct strv names;
};

struct imports {
    const struct python *p;
    const char *tag;              /* ".cpython-311-" */
    struct python_modules *ret;
    void *seen, *folders;         /* trees of char *, struct folder * */
    size_t files, depth;
};

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

static int by_path(const void *a, const void *b)
{
    return strcmp(((const struct folder *)a)->path, ((const struct folder *)b)->path);
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* ---- files ---- */

static const struct strv *names_of(struct imports *m, const char *path)
{
    struct folder key = { .path = (char *)path }, **found = tfind(&key, &m->folders, by_path), *f;
    DIR *d;

    if (found)
        return &(*found)->names;
    f = xcalloc(1, sizeof(*f));
    f->path = xstrdup(path);
    d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));)
        if (*e->d_name != '.')
            strv_add(&f->names, e->d_name);
    if (d)
        closedir(d);
    if (f->names.n)
        qsort(f->names.v, f->names.n, sizeof(*f->names.v), by_name);
    tsearch(f, &m->folders, by_path);
    return &f->names;
}

/* Index of the first name that is not below `name`. */
static size_t place(const struct strv *l, const char *name)
{
    size_t low = 0, high = l->n;

    while (low < high) {
        size_t mid = (low + high) / 2;

        if (strcmp(l->v[mid], name) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static bool has(const struct strv *l, const char *name)
{
    size_t i = place(l, name);

    return i < l->n && str_eq(l->v[i], name);
}

/* The compiled module `name` of a folder: owned, NULL none. */
static char *compiled(struct imports *m, const char *dir, const char *name)
{
    const struct strv *l = names_of(m, dir);
    size_t n = strlen(name);

    for (size_t i = place(l, name); i < l->n && strncmp(l->v[i], name, n) == 0; i++) {
        const char *end = l->v[i] + n;

        if (str_eq(end, ".so") || str_eq(end, ".abi3.so") || (str_starts(end, m->tag) && str_ends(end, ".so")))
            return path_join(dir, l->v[i]);
    }
    return NULL;
}

struct found {
    char *dir;     /* of a package; NULL */
    char *file;    /* its text; NULL */
    char *module;  /* its compiled file; NULL */
};

static bool found_in(struct imports *m, const char *dir, const char *name, struct found *ret)
{
    char *sub = path_join(dir, name), *py = xasprintf("%s.py", name);
    bool folder = has(names_of(m, dir), name);

    *ret = (struct found){ 0 };
    if (folder && (has(names_of(m, sub), "__init__.py") || (ret->module = compiled(m, sub, "__init__")))) {
        ret->dir = xstrdup(sub);
        ret->file = ret->module ? NULL : path_join(sub, "__init__.py");
    } else if (!(ret->module = compiled(m, dir, name))) {
        if (has(names_of(m, dir), py))
            ret->file = path_join(dir, py);
        else if (folder && names_of(m, sub)->n) /* without __init__.py */
            ret->dir = xstrdup(sub);
    }
    free(sub);
    free(py);
    return ret->dir || ret->file || ret->module;
}

static bool locate(struct imports *m, const char *in, const char *name, struct found *ret)
{
    if (in)
        return found_in(m, in, name, ret);
    for (size_t i = 0; i < m->p->path.n; i++)
        if (!str_ends(m->p->path.v[i], "/lib-dynload") && found_in(m, m->p->path.v[i], name, ret))
            return true;
    return false;
}

/* ---- text ---- */

/* A quoted text is passed over; p stands on its first quote. */
static const char *pass_string(const char *p)
{
    bool three = p[1] == *p && p[2] == *p;
    char quote = *p;

    for (p += three ? 3 : 1; *p; p++) {
        if (*p == '\\' && p[1])
            p++;
        else if (*p == quote && (!three || (p[1] == quote && p[2] == quote)))
            return p + (three ? 3 : 1);
        else if (*p == '\n' && !three)
            return p;
    }
    return p;
}

/* What has a meaning outside of quoted texts; everything between is taken over as it is. */
static const char marks[] = "\n\r\t#\"'\\()[]{}";

/* The next logical line without comments and quoted texts, its lines joined in brackets and behind a backslash. Of lines that
 * are indented the text is left out unless `inner`. */
static bool logical_line(const char **text, bool inner, struct str *ret, int *ret_indent)
{
    const char *p = *text;
    int depth = 0, indent = 0;
    bool keep;

    str_clear(ret);
    str_add(ret, "");
    for (; *p && strchr(" \t\n\r\f#", *p); p++) {
        indent = *p == '\n' ? 0 : indent + 1;
        if (*p == '#')
            p += strcspn(p, "\n") - 1;
    }
    if (!*p)
        return false;
    keep = inner || indent == 0;
    while (*p && (*p != '\n' || depth > 0)) {
        size_t plain = strcspn(p, marks);

        if (keep && plain)
            str_addn(ret, p, plain);
        p += plain;
        if (*p == '#') {
            p += strcspn(p, "\n");
        } else if (*p == '"' || *p == '\'') {
            p = pass_string(p);
        } else if (*p && (*p != '\n' || depth > 0)) {
            if (*p == '\\' && (p[1] == '\n' || (p[1] == '\r' && p[2] == '\n')))
                p += p[1] == '\r' ? 2 : 1;
            depth += strchr("([{", *p) ? 1 : strchr(")]}", *p) && depth > 0 ? -1 : 0;
            if (keep)
                str_add(ret, " ");
            p++;
        }
    }
    *text = p;
    *ret_indent = indent;
    return true;
}

static bool word(const char *line, const char *w)
{
    size_t n = strlen(w);

    return strncmp(line, w, n) == 0 && strchr(" :(", line[n]); /* or its end */
}

/* "a.b" of "a.b as c"; owned. */
static char *first_word(const char *s)
{
    s += strspn(s, " ");
    return xstrndup(s, strcspn(s, " ,;"));
}

/* "..c" seen from package "a.b": "a.c"; owned. NULL: it leads out of the package. */
static char *absolute(const char *name, const char *package)
{
    size_t dots = strspn(name, "."), n = strlen(package);

    if (!dots)
        return xstrdup(name);
    for (size_t i = 1; i < dots; i++) {
        while (n && package[n - 1] != '.')
            n--;
        if (!n)
            return NULL;
        n--;
    }
    if (!n)
        return NULL;
    return name[dots] ? xasprintf("%.*s.%s", (int)n, package, name + dots) : xstrndup(package, n);
}

/* The modules that a statement may import, "a.b" before "a.b.name". */
static void names_in_statement(const char *line, const char *package, struct strv *ret)
{
    const char *list = word(line, "import") ? line + 6 : strstr(line, " import ");
    char *from = word(line, "from") ? first_word(line + 4) : NULL, *base = from ? absolute(from, package) : NULL;
    struct strv parts = { 0 };

    if (list && (!from || base)) {
        if (base)
            strv_add(ret, base);
        strv_split(&parts, from ? list + 8 : list, ",");
        for (size_t i = 0; i < parts.n; i++) {
            char *name = first_word(parts.v[i]);

            if (*name && !str_eq(name, "*"))
                strv_addf(ret, "%s%s%s", base ? base : "", base ? "." : "", name);
            free(name);
        }
    }
    strv_release(&parts);
    free(from);
    free(base);
}

/* ---- the walk ---- */

static void import(struct imports *m, const char *name);

static void import_all(struct imports *m, struct strv *names)
{
    for (size_t i = 0; i < names->n; i++)
        import(m, names->v[i]);
    strv_release(names);
}

/* Of a block at the outermost level: the body of `try` and its handlers, `if` and its `else`. */
enum part { OUTSIDE, BODY, HANDLER, CONDITION, OTHERWISE };

static enum part part_after(enum part before, const char *line)
{
    bool tried = before == BODY || before == HANDLER;

    if (word(line, "try"))
        return BODY;
    if (tried && (word(line, "except") || word(line, "finally") || word(line, "else")))
        return HANDLER;
    if (word(line, "if") || (before == CONDITION && word(line, "elif")))
        return CONDITION;
    return before == CONDITION && word(line, "else") ? OTHERWISE : OUTSIDE;
}

/* Statements of the outermost level and those below `else`, where packages have what is common; a `try` counts when it lets the
 * failure through (`raise`, or no handler). */
static void import_text(struct imports *m, const char *text, const char *package)
{
    struct strv held = { 0 };
    struct str line = { 0 };
    enum part part = OUTSIDE;
    bool caught = false, raises = false;
    int indent, body = 0;

    while (logical_line(&text, part != OUTSIDE && part != CONDITION, &line, &indent)) {
        bool statement = word(line.s, "import") || word(line.s, "from");

        if (indent == 0) {
            enum part next = part_after(part, line.s);

            if (next != HANDLER) {
                if (raises || !caught)
                    import_all(m, &held);
                strv_release(&held);
                caught = raises = false;
                body = 0;
            }
            caught |= word(line.s, "except");
            part = next;
            if (statement) {
                names_in_statement(line.s, package, &held);
                import_all(m, &held);
            }
        } else if (part == BODY || part == OTHERWISE) {
            body = body ? body : indent;
            if (indent == body && statement)
                names_in_statement(line.s, package, &held);
        } else if (part == HANDLER) {
            raises |= word(line.s, "raise");
        }
    }
    if (raises || !caught)
        import_all(m, &held);
    strv_release(&held);
    str_release(&line);
}

static void add_module(struct python_modules *l, char *path, bool global) /* takes path */
{
    for (size_t i = 0; i < l->n; i++)
        if (str_eq(l->v[i].path, path)) {
            free(path);
            return;
        }
    *VEC_ADD(l) = (struct python_module){ .path = path, .global = global };
}

/* What packages open with RTLD_GLOBAL from their Python code before their modules. */
static void opened_globally(struct imports *m, const char *name, const struct found *f)
{
    static const struct { const char *package, *dir, *file; } rows[] = {
        { "torch", "lib", "libtorch_global_deps.so" },
    };

    for (size_t i = 0; i < COUNT(rows); i++) {
        char *dir = f->dir && str_eq(rows[i].package, name) ? path_join(f->dir, rows[i].dir) : NULL;

        if (dir && has(names_of(m, dir), rows[i].file))
            add_module(m->ret, path_join(dir, rows[i].file), true);
        free(dir);
    }
}

/* The folder of a package by its name, which was imported; owned, NULL: it is none. */
static char *folder_of(struct imports *m, const char *name)
{
    const char *last = strrchr(name, '.');
    char *parent = last ? xstrndup(name, (size_t)(last - name)) : NULL, *in = parent ? folder_of(m, parent) : NULL, *dir = NULL;
    struct found f;

    if ((!parent || in) && locate(m, in, last ? last + 1 : name, &f)) {
        dir = f.dir;
        free(f.file);
        free(f.module);
    }
    free(parent);
    free(in);
    return dir;
}

static void import_found(struct imports *m, const char *name, struct found *f)
{
    const char *last = strrchr(name, '.');
    char *package = f->dir || !last ? xstrdup(f->dir ? name : "") : xstrndup(name, (size_t)(last - name));
    struct str text = { 0 };

    opened_globally(m, name, f);
    if (f->module)
        add_module(m->ret, xstrdup(f->module), false);
    if (f->file && m->files++ < FILES_MAX && m->depth < DEPTH_MAX && file_read(f->file, TEXT_MAX, &text, NULL) == 0 && text.len) {
        m->depth++;
        import_text(m, text.s, package);
        m->depth--;
    }
    str_release(&text);
    free(package);
}

static void import(struct imports *m, const char *name)
{
    const char *last = strrchr(name, '.');
    char *parent, *in;
    struct found f;

    if (tfind(name, &m->seen, by_text))
        return;
    tsearch(xstrdup(name), &m->seen, by_text);
    parent = last ? xstrndup(name, (size_t)(last - name)) : NULL;
    if (parent)
        import(m, parent);
    in = parent ? folder_of(m, parent) : NULL;
    if ((!parent || in) && locate(m, in, last ? last + 1 : name, &f)) {
        import_found(m, name, &f);
        free(f.dir);
        free(f.file);
        free(f.module);
    }
    free(parent);
    free(in);
}

static void free_folder(void *p)
{
    struct folder *f = p;

    free(f->path);
    strv_release(&f->names);
    free(f);
}

void python_imports(const struct python *p, const char *tag, const struct strv *packages, struct python_modules *ret)
{
    struct imports m = { .p = p, .tag = tag, .ret = ret };

    for (size_t i = 0; i < packages->n; i++)
        import(&m, packages->v[i]);
    tdestroy(m.seen, free);
    tdestroy(m.folders, free_folder);
}
