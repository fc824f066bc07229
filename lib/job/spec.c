#include "config.h"
#include "job/job.h"

#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

const struct name device_names[] = {
    { "auto", DEVICE_AUTO }, { "cpu", DEVICE_CPU }, { "cuda", DEVICE_CUDA }, { NULL, 0 }
};
const struct name via_names[] = { { "auto", VIA_AUTO }, { "api", VIA_API }, { "sbatch", VIA_SBATCH }, { "nobody", VIA_NOBODY },
                                  { NULL, 0 } };

#define RETRY(key, def_, doc_)                                                                               \
    { .name = #key, .type = CONF_INT, .offset = offsetof(struct spec, retry.key) - offsetof(struct spec, retry),       \
      .def = def_, .doc = doc_ }
static const struct conf_row retry_rows[] = {
    RETRY(node_unfit, "2", "how often a dataset is sent elsewhere after a node was found unfit"),
    { .name = "closing", .type = CONF_BOOL, .def = "true",
      .offset = offsetof(struct spec, retry.closing) - offsetof(struct spec, retry),
      .doc = "a small job that waits for the tasks and sends again what met an unfit node; false: --watch or --resume does" },
    { .name = "partition", .type = CONF_TEXT,
      .offset = offsetof(struct spec, retry.partition) - offsetof(struct spec, retry),
      .doc = "where the closing job runs; absent: in the partition of the tasks" },
    { 0 },
};
static const struct conf_row submit_rows[] = {
    { .name = "via", .type = CONF_CHOICE, .offset = offsetof(struct spec, submit.via) - offsetof(struct spec, submit),
      .def = "auto", .names = via_names,
      .doc = "api: libslurm; sbatch: the commands; auto: libslurm when it can say every directive and no cli_filter "
             "is configured; nobody: --dry-run and --test-only ask no controller and go by slurm.conf" },
    { 0 },
};

#define IN(group, key, type_, def_, doc_)                                                                    \
    { .name = #key, .type = type_, .offset = offsetof(struct spec, group.key) - offsetof(struct spec, group), .def = def_, \
      .doc = doc_ }
static const struct conf_row on_end_rows[] = {
    IN(on_end, command, CONF_TEXTS, NULL, "program and arguments that the closing job runs when the run has ended; see below"),
    IN(on_end, mail, CONF_TEXT, NULL, "address that is told when the run has ended"),
    IN(on_end, mailer, CONF_TEXT, NULL,
       "the site's program for that, an absolute path, called as `mailer -s SUBJECT ADDRESS`; absent: Slurm's own mail"),
    { 0 },
};
const struct name container_names[] = { { "apptainer", CONTAINER_APPTAINER },
                                        { "pyxis", CONTAINER_PYXIS }, { "command", CONTAINER_COMMAND }, { NULL, 0 } };
static const struct conf_row container_rows[] = {
    { .name = "kind", .type = CONF_CHOICE, .offset = offsetof(struct spec_container, kind),
      .names = container_names, .doc = "what runs it: apptainer exec, srun with pyxis, or a command of the site's" },
    IN(container, image, CONF_TEXT, NULL, "a file, a folder, or a registry's reference with its @sha256: digest"),
    IN(container, digest, CONF_TEXT, NULL, "of a file, sha256:<64 hex>; settled at submission when it is absent"),
    IN(container, command, CONF_TEXTS, NULL, "kind command: program and arguments, {image} filled in; else the runtime's program"),
    IN(container, options, CONF_TEXTS, NULL, "more options for the runtime"),
    IN(container, bind, CONF_TEXTS, NULL, "folders that the job needs inside, SRC or SRC:DST, besides the run's own"),
    { 0 },
};

#define ROW(key, type_, def_, doc_)                                                                          \
    { .name = #key, .type = type_, .offset = offsetof(struct spec, key), .def = def_, .doc = doc_ }
const struct conf_row spec_rows[] = {
    ROW(name, CONF_TEXT, NULL, "begins the job's name and the run directory's; letters, digits and . _ -"),
    ROW(datasets, CONF_TEXT, NULL, "the list: one path a line; .tsv or .jsonl with more columns"),
    ROW(pipeline, CONF_TEXT, NULL, "a shipped pipeline by name, or a file; or `program`"),
    ROW(program, CONF_TEXTS, NULL, "program and arguments, with {dataset}, {out} or {column}; or `pipeline`"),
    ROW(script, CONF_TEXTS, NULL, "an sbatch script of your own and its arguments, run once a dataset; or one of the two above"),
    { .name = "device", .type = CONF_CHOICE, .offset = offsetof(struct spec, device), .def = "auto",
      .names = device_names, .doc = "where the pipeline runs; auto: cuda when a GPU is asked of Slurm, else cpu" },
    ROW(pin, CONF_TEXT, NULL, "the pinned environment; absent: captured at submission"),
    ROW(params, CONF_MAP, NULL, "parameters of the pipeline, a group for each step"),
    ROW(sbatch, CONF_MAP, NULL, "sbatch's long options and spellings; a flag is true"),
    ROW(max_running, CONF_INT, "0", "tasks at once over the whole run; 0: no bound"),
    ROW(max_tasks, CONF_INT, "0", "most array slots of a submission; 0: what the cluster takes"),
    ROW(datasets_per_task, CONF_INT, "0", "datasets that one task takes; 0: as few as fit the bounds of the cluster"),
    { .name = "retry", .type = CONF_GROUP, .offset = offsetof(struct spec, retry), .sub = retry_rows,
      .doc = "trying again" },
    { .name = "submit", .type = CONF_GROUP, .offset = offsetof(struct spec, submit), .sub = submit_rows,
      .doc = "how the script is handed over" },
    { .name = "on_end", .type = CONF_GROUP, .offset = offsetof(struct spec, on_end), .sub = on_end_rows,
      .doc = "who is told" },
    { .name = "container", .type = CONF_GROUP, .offset = offsetof(struct spec, container), .sub = container_rows,
      .doc = "what the tasks run in" },
    ROW(facts, CONF_TEXT, NULL, "folder with saved NODE.facts: the pin is held against them before the job is queued"),
    ROW(architectures, CONF_MAP, NULL,
        "compute capability by GRES type or feature, { a100 = \"8.0\"; }: what the GPU code is held against where no facts are saved"),
    ROW(template, CONF_TEXT, NULL, "the script's template: a name or a file; absent: default"),
    ROW(env, CONF_TEXTS, NULL, "variables to pin besides the default set: NAME as it is now, NAME=VALUE set"),
    { .name = "trusted_owners", .type = CONF_INTS, .offset = offsetof(struct spec, trusted_owners),
      .doc = "uids besides root and the user whose pins, templates and pipelines are taken" },
    { 0 },
};

void spec_release(struct spec *s)
{
    conf_release(spec_rows, s);
    conf_map_release(&s->params_from);
}

void spec_show(const struct spec *s, struct str *ret)
{
    conf_write(spec_rows, s, ret);
}

uid_t *spec_trusted(const struct spec *s)
{
    uid_t *list = xcalloc(s->trusted_owners.n + 1, sizeof(*list));

    for (size_t i = 0; i < s->trusted_owners.n; i++)
        list[i] = (uid_t)s->trusted_owners.v[i];
    list[s->trusted_owners.n] = (uid_t)-1;
    return list;
}

bool spec_asks_gpu(const struct spec *s)
{
    const char *gres = conf_map_get(&s->sbatch, "gres");

    for (size_t i = 0; i < s->sbatch.n; i++)
        if (str_starts(s->sbatch.v[i].name, "gpus") && !str_eq(s->sbatch.v[i].value, "0"))
            return true;
    for (; gres && *gres; gres += strcspn(gres, ","), gres += *gres == ',') {
        const char *item = str_starts(gres, "gres:") ? gres + 5 : gres;
        size_t n = strcspn(item, ":,=");

        if ((n == 3 && memcmp(item, "gpu", 3) == 0) || (n == 5 && memcmp(item, "shard", 5) == 0))
            return true;
    }
    return false;
}

char *spec_name_of(const char *text)
{
    char *name = xstrdup(path_base(text));

    for (char *p = name; *p; p++)
        if (!isalnum((unsigned char)*p) && (p == name || !strchr("._-", *p)))
            *p = p == name ? 'x' : '-';
    if (strlen(name) > 40)
        name[40] = 0;
    if (!*name) {
        free(name);
        name = xstrdup("run");
    }
    return name;
}

/* ---- rules over the whole ---- */

static int check_name(const char *name, struct err *err)
{
    size_t n = strlen(name);

    for (const char *p = name; *p; p++)
        if (!isalnum((unsigned char)*p) && !strchr("._-", *p))
            return err_set(err, CODE_USAGE, "'name' is '%s'; letters, digits and . _ - are wanted", name);
    if (n == 0 || n > 64 || !isalnum((unsigned char)*name))
        return err_set(err, CODE_USAGE, "'name' is '%s'; 1 to 64 characters that begin with a letter or digit are wanted",
                       name);
    return 0;
}

static int check_range(const char *key, int64_t v, int64_t most, struct err *err)
{
    if (v < 0 || v > most)
        return err_set(err, CODE_USAGE, "'%s' is %lld, wanted 0 to %lld", key, (long long)v, (long long)most);
    return 0;
}

static int check_env(const struct strv *env, struct err *err)
{
    for (size_t i = 0; i < env->n; i++) {
        size_t n = strcspn(env->v[i], "=");
        bool good = n > 0 && !isdigit((unsigned char)env->v[i][0]);

        for (size_t k = 0; k < n; k++)
            good = good && (isalnum((unsigned char)env->v[i][k]) || env->v[i][k] == '_');
        if (!good)
            return err_set(err, CODE_USAGE, "'env' holds '%.*s', which is no name of a variable", (int)n, env->v[i]);
    }
    return 0;
}

static int check_architectures(const struct conf_map *m, struct err *err)
{
    for (size_t i = 0; i < m->n; i++) {
        const char *v = m->v[i].value;
        size_t major = strspn(v, "0123456789");

        if (m->v[i].kind != CONF_KIND_TEXT || !major || v[major] != '.' || strspn(v + major + 1, "0123456789") != 1 || v[major + 2])
            return err_set(err, CODE_USAGE, "'architectures.%s' is '%s', wanted a compute capability in quotes as \"9.0\"",
                           m->v[i].name, v);
    }
    return 0;
}

static int check_on_end(const struct spec *s, struct err *err)
{
    const char *mail = s->on_end.mail, *mailer = s->on_end.mailer;

    if (s->on_end.command.n && *s->on_end.command.v[0] != '/')
        return err_set(err, CODE_USAGE, "'on_end.command' begins with '%s', wanted a path", s->on_end.command.v[0]);
    if (mailer && *mailer != '/')
        return err_set(err, CODE_USAGE, "'on_end.mailer' is '%s', wanted an absolute path", mailer);
    if (mail && (!*mail || *mail == '-' || strpbrk(mail, " \t\r\n'\"\\$`;|&<>")))
        return err_set(err, CODE_USAGE, "'on_end.mail' is '%s', which is no address", mail);
    if ((mail || s->on_end.command.n) && !s->retry.closing)
        return err_set(err, CODE_USAGE, "'on_end' is the closing job's work, and 'retry.closing' is false");
    return 0;
}

static int check_container(const struct spec_container *c, struct err *err)
{
    const char *d = c->digest;

    if (c->kind <= CONTAINER_NONE)
        return c->image ? err_set(err, CODE_USAGE, "'container.image' is given without 'container.kind'") : 0;
    if (!c->image)
        return err_set(err, CODE_USAGE, "'container.image' is missing");
    if (c->kind == CONTAINER_COMMAND && !c->command.n)
        return err_set(err, CODE_USAGE, "'container.command' is missing: kind is \"command\"");
    if (d && (!str_starts(d, "sha256:") || strlen(d) != 71 || strspn(d + 7, "0123456789abcdef") != 64))
        return err_set(err, CODE_USAGE, "'container.digest' is '%s', wanted sha256: and 64 hexadecimal digits", d);
    for (size_t i = 0; i < c->bind.n; i++)
        if (*c->bind.v[i] != '/' || strchr(c->bind.v[i], ','))
            return err_set(err, CODE_USAGE, "'container.bind' holds '%s', wanted an absolute path without commas", c->bind.v[i]);
    return 0;
}

int spec_check(const struct spec *s, struct err *err)
{
    int n;

    if (!s->name)
        return err_set(err, CODE_USAGE, "'name' is missing: it begins the names of job and run directory");
    if (check_name(s->name, err) || check_env(&s->env, err))
        return -1;
    if (!s->datasets)
        return err_set(err, CODE_USAGE, "'datasets' is missing: the list with one path a line");
    n = !!s->pipeline + !!s->program.n + !!s->script.n;
    if (n != 1)
        return err_set(err, CODE_USAGE, "%s of 'pipeline', 'program' and 'script' %s given; one says what to run",
                       n ? "several" : "none", n ? "are" : "is");
    if (check_architectures(&s->architectures, err) || check_on_end(s, err) || check_container(&s->container, err))
        return -1;
    for (size_t i = 0; i < s->trusted_owners.n; i++)
        if (check_range("trusted_owners", s->trusted_owners.v[i], (int64_t)UINT32_MAX - 1, err))
            return -1;
    return check_range("max_running", s->max_running, 10000000, err) ||
                   check_range("max_tasks", s->max_tasks, 10000000, err) ||
                   check_range("datasets_per_task", s->datasets_per_task, 10000000, err) ||
                   check_range("retry.node_unfit", s->retry.node_unfit, 1000, err)
               ? -1
               : 0;
}

/* ---- where files of a kind are ---- */

char *spec_find(const struct spec_place *p, const char *kind, const char *name, const char *suffix, struct err *err)
{
    char *shipped = xasprintf("share/recon/%s", kind);
    struct strv dirs = { 0 };
    char *found = NULL, *path;
    struct str looked = { 0 };

    if (strchr(name, '/')) {
        free(shipped);
        if (access(name, R_OK)) {
            err_sys(err, CODE_USAGE, "cannot read '%s'", name);
            return NULL;
        }
        return path_absolute(name);
    }
    if (p->dir)
        strv_addf(&dirs, "%s/%s", p->dir, kind);
    if (p->home)
        strv_addf(&dirs, "%s/.config/recon/%s", p->home, kind);
    strv_addf(&dirs, "%s/etc/recon/%s", p->root ? p->root : "", kind);
    path = path_part(shipped);
    strv_add(&dirs, path);
    free(path);
    for (size_t i = 0; i < dirs.n && !found; i++) {
        path = xasprintf("%s/%s%s", dirs.v[i], name, str_ends(name, suffix) ? "" : suffix);
        if (access(path, R_OK) == 0)
            found = path;
        else
            free(path);
        str_addf(&looked, "%s'%s'", i ? ", " : "", dirs.v[i]);
    }
    if (!found)
        err_set(err, CODE_USAGE, "'%s' is in none of %s", name, looked.s);
    str_release(&looked);
    strv_release(&dirs);
    free(shipped);
    return found;
}
