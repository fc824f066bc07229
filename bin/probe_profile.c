/* Vendors that a profile describes (doc/format-profile.md): a command to ask, and how to read its answer. */
#include "config.h"

#include <dirent.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>
#include "probe.h"

struct profile {
    int64_t version, header_lines;
    char *name, *separator, *device, *symbols;
    struct strv query, fields, runtimes, foreign;
};
#define ROW(m) .offset = offsetof(struct profile, m)
static const struct conf_row rows[] = {
    { .name = "version", .type = CONF_INT, ROW(version), .doc = "of this format: 1" },
    { .name = "name", .type = CONF_TEXT, ROW(name), .doc = "of the vendor", .flags = CONF_REQUIRED },
    { .name = "query",
      .type = CONF_TEXTS,
      ROW(query),
      .doc = "command and arguments",
      .flags = CONF_REQUIRED },
    { .name = "fields", .type = CONF_TEXTS, ROW(fields), .doc = "columns", .flags = CONF_REQUIRED },
    { .name = "separator", .type = CONF_TEXT, ROW(separator), .def = ",", .doc = "between columns" },
    { .name = "header_lines",
      .type = CONF_INT,
      ROW(header_lines),
      .def = "0",
      .doc = "lines before the first GPU" },
    { .name = "device", .type = CONF_TEXT, ROW(device), .doc = "device file that is there where a GPU is" },
    { .name = "runtimes", .type = CONF_TEXTS, ROW(runtimes), .doc = "how SONAMEs of its libraries begin" },
    { .name = "foreign",
      .type = CONF_TEXTS,
      ROW(foreign),
      .doc = "how SONAMEs begin that cannot work there" },
    { .name = "symbols", .type = CONF_TEXT, ROW(symbols), .doc = "how the names of its functions begin" },
    { 0 },
};

static const struct {
    const char *name;
    size_t offset;
} texts[] = {
    { "name", offsetof(struct facts_gpu, name) },
    { "uuid", offsetof(struct facts_gpu, uuid) },
    { "pci", offsetof(struct facts_gpu, pci) },
    { "compute_capability", offsetof(struct facts_gpu, compute_capability) },
};

/* Without blanks at its ends; owned. */
static char *trimmed(const char *s)
{
    size_t n;

    s += strspn(s, " \t\r");
    n = strlen(s);
    while (n && strchr(" \t\r", s[n - 1]))
        n--;
    return xstrndup(s, n);
}

static void set_field(struct facts_gpu *g, const char *field, const char *cell)
{
    char *value = trimmed(cell);

    for (size_t i = 0; i < COUNT(texts); i++)
        if (str_eq(texts[i].name, field) && *value) {
            char **at = (char **)((char *)g + texts[i].offset);

            free(*at);
            *at = xstrdup(value);
        }
    if (str_eq(field, "memory_mib") && value[strspn(value, "0123456789")] <= ' ' && *value)
        g->memory_mib = strtoll(value, NULL, 10);
    free(value);
}

static int read_answer(const struct profile *p, const char *answer, struct facts *f)
{
    struct strv lines = { 0 };
    int rc = 0;

    strv_split(&lines, answer, "\n");
    for (size_t i = (size_t)(p->header_lines > 0 ? p->header_lines : 0); i < lines.n && rc == 0; i++) {
        struct strv cells = { 0 };
        struct facts_gpu *g;

        if (!lines.v[i][strspn(lines.v[i], " \t\r")])
            continue;
        strv_split(&cells, lines.v[i], p->separator);
        if (cells.n < p->fields.n) {
            strv_addf(&f->unknown, "%s: '%s' gave '%.60s', wanted %zu columns", p->name, p->query.v[0],
                      lines.v[i], p->fields.n);
            rc = -1;
        } else {
            g = VEC_ADD(&f->gpus);
            g->vendor = xstrdup(p->name);
            g->memory_mib = CONF_UNSET;
            for (size_t c = 0; c < p->fields.n; c++)
                set_field(g, p->fields.v[c], cells.v[c]);
            if (g->pci)
                pci_cpus(g->pci, &g->cpus);
        }
        strv_release(&cells);
    }
    strv_release(&lines);
    return rc;
}

/* 0: the vendor's GPUs are known, also when there is none. */
static int ask(const struct probe *q, const struct profile *p, struct facts *f)
{
    struct child c = { .argv = (const char *const *)p->query.v,
                       .env = environ,
                       .search = true,
                       .deadline_ms = q->deadline_ms * 0.8 };
    struct err err = { 0 };
    int rc = -1;

    if (p->device && access(p->device, F_OK))
        return 0;
    if (child_run(&c, &err)) {
        if (err.code == CODE_NOTFOUND && !p->device)
            rc = 0; /* nothing of this vendor is installed */
        else
            strv_addf(&f->unknown, "%s: %s", p->name, err.text);
    } else if (c.status) {
        strv_addf(&f->unknown, "%s: '%s' ended with status %d", p->name, p->query.v[0], c.status >> 8);
    } else {
        rc = read_answer(p, c.out.s ? c.out.s : "", f);
    }
    str_release(&c.out);
    str_release(&c.errout);
    return rc;
}

static void tell(const struct profile *p, struct facts *f)
{
    struct facts_vendor *v = VEC_ADD(&f->vendors);

    v->name = xstrdup(p->name);
    v->symbols = xstrdup(p->symbols);
    strv_copy(&v->runtimes, &p->runtimes);
    strv_copy(&v->foreign, &p->foreign);
}

static int one(const struct probe *q, const char *path, struct facts *f)
{
    struct conf *c = NULL;
    struct profile p;
    struct err err = { 0 };
    int rc = 0;

    if (file_trusted(path, NULL, &err) || !(c = conf_load(path, &err))) {
        strv_addf(&f->unknown, "profiles: %s", err.text);
        return 0; /* one bad profile does not make every GPU unknown */
    }
    if (conf_bind(c, rows, &p, &err) || p.version != 1 || !p.query.n || !p.fields.n) {
        strv_addf(&f->unknown, "profiles: %s", err.code ? err.text : path);
    } else {
        tell(&p, f);
        rc = ask(q, &p, f);
    }
    conf_release(rows, &p);
    conf_free(c);
    return rc;
}

void probe_profiles(const struct probe *q, struct facts *f)
{
    char *own = q->profiles ? NULL : path_part("share/recon/profiles");
    const char *dir = q->profiles ? q->profiles : own;
    DIR *d = opendir(dir);
    struct dirent *e;

    f->gpus_known = true;
    while (d && (e = readdir(d))) {
        char *path = path_join(dir, e->d_name);

        if (e->d_name[0] != '.' && str_ends(e->d_name, ".conf") && one(q, path, f))
            f->gpus_known = false;
        free(path);
    }
    if (d)
        closedir(d);
    free(own);
}
