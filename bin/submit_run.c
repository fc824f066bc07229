/* The run directory: made, locked, filled; the parts that are submitted from it. */
#include "config.h"
#include "recon-submit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

static int put_file(const struct order *x, const char *name, const struct str *text, struct err *err)
{
    char *path = path_join(x->path, name);
    int rc = file_write(path, text->s ? text->s : "", text->len, 0666, err);

    free(path);
    return rc;
}

/* ---- a new run ---- */

static void name_run(struct order *x)
{
    uint32_t id = 0;
    char *path;

    if (getrandom(&id, sizeof(id), 0) != (ssize_t)sizeof(id))
        id = (uint32_t)getpid() ^ (uint32_t)(clock_ms() * 1000);
    x->hex = xasprintf("%08x", id);
    path = x->o->run_dir ? xstrdup(x->o->run_dir) : xasprintf("runs/%s-%s", x->spec.name, x->hex);
    x->path = path_absolute(path);
    free(path);
}

int run_lock(struct order *x, struct err *err)
{
    char *path = path_join(x->path, ".lock");
    int rc = 0;

    x->lock = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (x->lock < 0)
        rc = err_sys(err, CODE_CREATE, "cannot lock '%s'", path);
    else if (flock(x->lock, LOCK_EX | LOCK_NB))
        rc = errno == EWOULDBLOCK
                 ? err_set(err, CODE_UNAVAILABLE, "another recon-submit works on '%s'; wait for it, or --cancel it", x->path)
                 : err_sys(err, CODE_IO, "cannot lock '%s'", path);
    free(path);
    return rc;
}

static int put_pin(struct order *x, struct err *err)
{
    char *path = path_join(x->path, "env.pin");
    struct str bytes = { 0 };
    int rc;

    if (x->pin_changed) {
        rc = pin_write(path, &x->pin, err);
    } else { /* the same bytes, so that the digest stays */
        rc = file_read(x->spec.pin, FILE_MAX_DEFAULT, &bytes, err);
        if (rc == 0)
            rc = put_file(x, "env.pin", &bytes, err);
    }
    str_release(&bytes);
    free(path);
    return rc;
}

static int put_spec(struct order *x, struct err *err)
{
    struct str t = { 0 };
    int rc;

    str_add(&t, "# what was asked, all layers merged; see recon-submit(1)\n");
    spec_show(&x->spec, &t);
    rc = put_file(x, "job.conf", &t, err);
    str_release(&t);
    return rc;
}

int run_begin(struct order *x, struct err *err)
{
    x->run = run_create(x->path, &x->datasets, err);
    if (!x->run)
        return -1;
    x->made = true;
    if (run_lock(x, err) == 0 && put_spec(x, err) == 0 && put_pin(x, err) == 0 &&
        (!x->pipeline || put_file(x, "pipeline.conf", &x->pipeline_text, err) == 0) &&
        (!x->wrapped.text.len || put_file(x, WRAPPED_COPY, &x->wrapped.text, err) == 0))
        return 0;
    run_undo(x, err->text);
    return -1;
}

void run_undo(struct order *x, const char *why)
{
    char *parent;

    (void)why;
    if (!x->made)
        return;
    if (dir_remove(x->path))
        cli_warn("what was made of '%s' cannot be removed; remove it by hand", x->path);
    parent = path_dir(x->path);
    if (!x->o->run_dir)
        rmdir(parent); /* runs/, if nothing else is in it */
    free(parent);
    x->made = false;
}

/* ---- a part ---- */

static char *umask_text(void)
{
    mode_t mask = umask(0);

    umask(mask);
    return xasprintf("%04o", (unsigned)mask & 0777);
}

/* Where tasks start: what the spec says, else the folder of job.conf, else here. */
static char *chdir_path(const struct order *x)
{
    const char *asked = conf_map_get(&x->spec.sbatch, "chdir");
    char *whole, *dir;

    if (asked || !x->o->job_conf)
        return path_absolute(asked ? asked : x->cwd);
    whole = path_absolute(x->o->job_conf);
    dir = path_dir(whole);
    free(whole);
    return dir;
}

static void keep_chdir(struct order *x, const char *path)
{
    conf_map_set(&x->spec.sbatch, "chdir", path, CONF_KIND_TEXT); /* stands in RUN/job.conf, for --resume */
}

/* A part waits for the one before it, so that max_running holds over the whole run. */
static void chain(struct order *x, const char *after, char **ret_saved)
{
    const char *asked = conf_map_get(&x->spec.sbatch, "dependency");
    char *both;

    *ret_saved = xstrdup(asked);
    both = asked ? xasprintf("%s,afterany:%s", asked, after) : xasprintf("afterany:%s", after);
    conf_map_set(&x->spec.sbatch, "dependency", both, CONF_KIND_TEXT);
    free(both);
}

static void unchain(struct order *x, char *saved)
{
    struct conf_map *m = &x->spec.sbatch;

    if (saved) {
        conf_map_set(m, "dependency", saved, CONF_KIND_TEXT);
    } else if (m->n && str_eq(m->v[m->n - 1].name, "dependency")) {
        m->n--;
        free(m->v[m->n].name);
        free(m->v[m->n].value);
    }
    free(saved);
}

int part_make(struct order *x, struct part *p, uint32_t sub, uint64_t from, const char *after, struct err *err)
{
    uint64_t most = (uint64_t)(x->slots_now ? x->slots_now : x->slots_max) * x->per_task;
    char *mask = umask_text(), *dir = chdir_path(x), *launcher = path_part("bin/recon-launch"), *saved = NULL;
    struct script s = { .spec = &x->spec, .pin = &x->pin, .run = x->path, .sub = sub, .chdir = dir,
                        .exclude = x->exclude, .umask = mask, .launcher = launcher, .argv = &x->argv, .each = x->spec.script.n > 0,
                        .template_text = x->template_text.s, .template_name = x->template_path };
    struct strv binds = { 0 };
    int rc;

    *p = (struct part){ .sub = sub, .from = from };
    p->n = x->n_todo - from < most ? x->n_todo - from : most;
    p->slots = (uint32_t)((p->n + x->per_task - 1) / x->per_task);
    p->name = xasprintf("%s-%s.%u", x->spec.name, x->hex, sub);
    p->script_path = xasprintf("%s/sub/%u.sbatch", x->path, sub);
    s.job_name = p->name;
    s.slots = p->slots;
    container_binds(x, dir, &binds);
    s.binds = &binds;
    if (after)
        chain(x, after, &saved);
    rc = script_render(&s, &p->script, err);
    if (after)
        unchain(x, saved);
    if (rc == 0)
        keep_chdir(x, dir);
    strv_release(&binds);
    free(mask);
    free(dir);
    free(launcher);
    return rc;
}

static int link_script(const struct order *x, const struct part *p, struct err *err)
{
    char *to = xasprintf("sub/%u.sbatch", p->sub), *at = path_join(x->path, "script.sbatch");
    char *tmp = path_join(x->path, ".script.sbatch");
    int rc = 0;

    unlink(tmp);
    if (symlink(to, tmp) || rename(tmp, at))
        rc = err_sys(err, CODE_CREATE, "cannot make '%s'", at);
    free(to);
    free(at);
    free(tmp);
    return rc;
}

int part_write(struct order *x, struct part *p, struct err *err)
{
    struct submap m = { .slots = p->slots, .per_task = x->per_task, .datasets = x->todo + p->from, .n = p->n };

    if (put_spec(x, err) || run_write_map(x->run, p->sub, &m, err))
        return -1;
    if (file_write(p->script_path, p->script.s, p->script.len, 0666, err))
        return -1;
    return link_script(x, p, err);
}

void part_release(struct part *p)
{
    free(p->name);
    free(p->script_path);
    free(p->job_id);
    str_release(&p->script);
    *p = (struct part){ 0 };
}

char *run_digest(const char *run, const char *name)
{
    char *path = path_join(run, name), digest[DIGEST_SIZE];
    bool there = access(path, R_OK) == 0 && digest_file(path, digest, NULL) == 0;

    free(path);
    return there ? xstrdup(digest) : NULL;
}


void order_name(struct order *x)
{
    if (!x->path)
        name_run(x);
}
