/* Submissions: maps of slots, submit.jsonl; nodes found unfit. */
#include "config.h"
#include "record/record_priv.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <unistd.h>

static const char magic[8] = { 'r', 'e', 'c', 'o', 'n', 'M', 'P', '1' };

/* ---- maps ---- */

static bool map_fits(uint64_t slots, uint64_t per_task, uint64_t n)
{
    return slots && per_task && n <= slots * per_task && n > (slots - 1) * per_task;
}

/* A map is never replaced: link(2) fails where one is; a file system without links gets a rename. */
static int commit_new(struct file_out *o, struct err *err)
{
    if (fflush(o->f) || ferror(o->f) || fsync(fileno(o->f)))
        return err_sys(err, CODE_IO, "cannot write '%s'", o->path);
    if (link(o->tmp, o->path) == 0)
        return 0;
    if (errno == EEXIST || access(o->path, F_OK) == 0)
        return err_set(err, CODE_CREATE, "'%s' exists already: that submission was made", o->path);
    return file_commit(o, err);
}

bool run_first(const struct run *r, const char *what)
{
    char *path = run_file(r, ".%s-%d", what, run_next_sub(r));
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    bool first = fd >= 0 || errno != EEXIST;

    if (fd >= 0)
        close(fd);
    free(path);
    return first;
}

int run_write_map(struct run *r, uint32_t sub, const struct submap *m, struct err *err)
{
    uint32_t head[2] = { htole32(m->slots), htole32(m->per_task) };
    struct file_out o = { 0 };
    char *path;
    int rc = -1;

    if (!map_fits(m->slots, m->per_task, m->n))
        return err_set(err, CODE_INTERNAL, "map of submission %u: %u slots of %u do not hold %llu datasets", sub, m->slots,
                       m->per_task, (unsigned long long)m->n);
    for (uint64_t i = 0; i < m->n; i++)
        if (m->datasets[i] >= r->n)
            return err_set(err, CODE_INTERNAL, "map of submission %u: dataset %u is outside", sub, m->datasets[i]);
    path = run_file(r, "sub/%u.map", sub);
    if (file_open_out(&o, path, r->mode, err) == 0) {
        fwrite(magic, sizeof(magic), 1, o.f);
        fwrite(head, sizeof(head), 1, o.f);
        for (uint64_t i = 0; i < m->n; i++) {
            uint32_t le = htole32(m->datasets[i]);

            fwrite(&le, sizeof(le), 1, o.f);
        }
        rc = commit_new(&o, err);
        file_abort(&o);
    }
    free(path);
    return rc;
}

int run_read_map(const struct run *r, uint32_t sub, struct submap *ret, struct err *err)
{
    char *path = run_file(r, "sub/%u.map", sub);
    struct submap m = { 0 };
    struct str text = { 0 };
    uint32_t head[2];
    struct err why = { 0 };
    int rc = file_read(path, RECORD_FILE_MAX, &text, &why);

    if (rc) {
        err_set(err, why.code == CODE_NOTFOUND ? CODE_USAGE : why.code, "map of submission %u: %s", sub, why.text);
        goto out;
    }
    rc = -1;
    if (text.len < 20 || text.len % 4 || memcmp(text.s, magic, sizeof(magic))) {
        err_set(err, CODE_IO, "'%s' is no map: %zu bytes, wanted \"reconMP1\" and numbers", path, text.len);
        goto out;
    }
    memcpy(head, text.s + 8, sizeof(head));
    m = (struct submap){ .slots = le32toh(head[0]), .per_task = le32toh(head[1]), .n = (text.len - 16) / 4 };
    if (!map_fits(m.slots, m.per_task, m.n)) {
        err_set(err, CODE_IO, "'%s' is damaged: %u slots of %u do not hold %llu datasets", path, m.slots, m.per_task,
                (unsigned long long)m.n);
        goto out;
    }
    m.datasets = xmalloc(m.n * 4);
    memcpy(m.datasets, text.s + 16, m.n * 4);
    for (uint64_t i = 0; i < m.n; i++) {
        m.datasets[i] = le32toh(m.datasets[i]);
        if (m.datasets[i] >= r->n) {
            err_set(err, CODE_IO, "'%s' is damaged: dataset %u is outside", path, m.datasets[i]);
            free(m.datasets);
            goto out;
        }
    }
    *ret = m;
    rc = 0;
out:
    str_release(&text);
    free(path);
    return rc;
}

int submap_slot(const struct submap *m, uint32_t slot, const uint32_t **ret, uint32_t *ret_n, struct err *err)
{
    uint64_t first = (uint64_t)slot * m->per_task;

    if (slot >= m->slots)
        return err_set(err, CODE_USAGE, "slot %u is outside: the submission has %u", slot, m->slots);
    *ret = m->datasets + first;
    *ret_n = m->n - first < m->per_task ? (uint32_t)(m->n - first) : m->per_task;
    return 0;
}

void submap_release(struct submap *m)
{
    free(m->datasets);
    *m = (struct submap){ 0 };
}

/* ---- submit.jsonl ---- */

static int append(const struct run *r, const char *name, json_t *o, struct err *err)
{
    char *path = run_file(r, "%s", name);
    struct str line = { 0 };
    int rc;

    line_end(o, &line);
    rc = append_line(path, &line, err);
    str_release(&line);
    free(path);
    return rc;
}

static json_t *stamped(const char *type)
{
    json_t *o = line_new(type);
    char now[32];

    clock_iso(now);
    put_text(o, "time", now);
    return o;
}

int run_submit_intent(struct run *r, uint32_t sub, const char *backend, const char *name, uint64_t tasks, struct err *err)
{
    json_t *o = stamped("intent");

    put_u64(o, "sub", sub);
    put_text(o, "backend", backend);
    put_text(o, "name", name);
    put_u64(o, "tasks", tasks);
    return append(r, "submit.jsonl", o, err);
}

int run_submit_result(struct run *r, uint32_t sub, const char *job_id, const char *error, struct err *err)
{
    json_t *o = stamped("result");

    put_u64(o, "sub", sub);
    put_text(o, "job_id", job_id);
    put_text(o, "error", error);
    return append(r, "submit.jsonl", o, err);
}

int run_submit_cancelled(struct run *r, uint32_t sub, struct err *err)
{
    json_t *o = stamped("cancelled");

    put_u64(o, "sub", sub);
    return append(r, "submit.jsonl", o, err);
}

static void replace(char **at, const char *s)
{
    if (s) {
        free(*at);
        *at = xstrdup(s);
    }
}

static int read_submit(void *arg, json_t *o, size_t no, struct err *err)
{
    struct submissions *l = arg;
    uint32_t sub = (uint32_t)get_u64(o, "sub");
    struct submission *s = NULL;
    const char *type = get_text(o, "type");

    (void)no;
    (void)err;
    if (!str_eq(type, "intent") && !str_eq(type, "result") && !str_eq(type, "cancelled"))
        return 0;
    for (size_t i = l->n; i-- > 0 && !s;)
        if (l->v[i].sub == sub)
            s = &l->v[i];
    if (!s) {
        s = VEC_ADD(l);
        s->sub = sub;
    }
    if (str_eq(type, "intent")) { /* a second one is a new try */
        s->tasks = get_u64(o, "tasks");
        free(s->job_id);
        free(s->error);
        s->job_id = s->error = NULL;
    }
    s->cancelled = str_eq(type, "cancelled");
    replace(&s->backend, get_text(o, "backend"));
    replace(&s->name, get_text(o, "name"));
    replace(&s->job_id, get_text(o, "job_id"));
    replace(&s->error, get_text(o, "error"));
    return 0;
}

int run_submissions(const struct run *r, struct submissions *ret, struct err *err)
{
    char *path = run_file(r, "submit.jsonl");
    struct submissions l = { 0 };
    int rc = file_lines(path, read_submit, &l, err);

    free(path);
    if (rc)
        submissions_release(&l);
    else
        *ret = l;
    return rc;
}

void submissions_release(struct submissions *l)
{
    for (size_t i = 0; i < l->n; i++) {
        free(l->v[i].backend);
        free(l->v[i].name);
        free(l->v[i].job_id);
        free(l->v[i].error);
    }
    free(l->v);
    *l = (struct submissions){ 0 };
}

/* A number is used as soon as a file of that submission stands in sub/ or its intent in submit.jsonl. */
int run_next_sub(const struct run *r)
{
    char *dir = run_file(r, "sub");
    struct submissions l = { 0 };
    DIR *d = opendir(dir);
    struct dirent *e;
    int next = 0;

    while (d && (e = readdir(d))) {
        char *end;
        unsigned long n = strtoul(e->d_name, &end, 10);

        if (end > e->d_name && *end == '.' && n < INT32_MAX && (int)n >= next)
            next = (int)n + 1;
    }
    if (d)
        closedir(d);
    if (run_submissions(r, &l, NULL) == 0)
        for (size_t i = 0; i < l.n; i++)
            if (l.v[i].sub < INT32_MAX && (int)l.v[i].sub >= next)
                next = (int)l.v[i].sub + 1;
    submissions_release(&l);
    free(dir);
    return next;
}

/* ---- bad-nodes.jsonl ---- */

static int put_node(struct run *r, const char *type, const char *node, const struct finding *f, struct err *err)
{
    json_t *o = stamped(type);

    put_text(o, "node", node);
    put_text(o, "rule", f->rule);
    put_text(o, "object", f->object ? f->object : "");
    put_text(o, "text", f->text ? f->text : "");
    return append(r, "bad-nodes.jsonl", o, err);
}

int run_bad_node(struct run *r, const char *node, const struct finding *f, struct err *err)
{
    return put_node(r, "bad-node", node, f, err);
}

int run_job_finding(struct run *r, const char *node, const struct finding *f, struct err *err)
{
    return put_node(r, "job-finding", node, f, err);
}

/* Findings by rule and object, each with the first node that had it. */
struct agreement {
    struct strv what, nodes;
    char *agreed;
};

static int read_job_finding(void *arg, json_t *o, size_t no, struct err *err)
{
    struct agreement *a = arg;
    const char *node = get_text(o, "node"), *rule = get_text(o, "rule"), *object = get_text(o, "object");
    char *what;
    size_t i = 0;

    (void)no;
    (void)err;
    if (a->agreed || !node || !rule || !str_eq(get_text(o, "type"), "job-finding"))
        return 0;
    what = xasprintf("%s: %s", rule, object ? object : "");
    while (i < a->what.n && !str_eq(a->what.v[i], what))
        i++;
    if (i < a->what.n && !str_eq(a->nodes.v[i], node)) {
        a->agreed = what;
        return 0;
    }
    if (i == a->what.n && i < 1000) {
        strv_add(&a->what, what);
        strv_add(&a->nodes, node);
    }
    free(what);
    return 0;
}

char *run_agreed(const struct run *r)
{
    char *path = run_file(r, "bad-nodes.jsonl");
    struct agreement a = { 0 };

    file_lines(path, read_job_finding, &a, NULL);
    strv_release(&a.what);
    strv_release(&a.nodes);
    free(path);
    return a.agreed;
}

struct nodes {
    struct strv list;
    struct names seen;
};

static int read_node(void *arg, json_t *o, size_t no, struct err *err)
{
    struct nodes *l = arg;
    const char *node = get_text(o, "node");
    struct names_slot *at;

    (void)no;
    (void)err;
    if (!node || !str_eq(get_text(o, "type"), "bad-node"))
        return 0;
    names_room(&l->seen);
    at = names_find(&l->seen, node);
    if (!at->name) {
        strv_add(&l->list, node);
        names_put(&l->seen, at, l->list.v[l->list.n - 1]);
    }
    return 0;
}

int run_bad_nodes(const struct run *r, struct strv *ret, struct err *err)
{
    char *path = run_file(r, "bad-nodes.jsonl");
    struct nodes l = { 0 };
    int rc = file_lines(path, read_node, &l, err);

    if (rc == 0)
        strv_copy(ret, &l.list);
    strv_release(&l.list);
    names_release(&l.seen);
    free(path);
    return rc;
}
