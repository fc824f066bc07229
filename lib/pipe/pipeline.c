#include "config.h"

#include <ctype.h>
#include <stdlib.h>
#include "pipe/pipe.h"

#define PIPELINE_VERSION 1

#define STEP(m) offsetof(struct step, m)
static const struct conf_row step_rows[] = {
    { .name = "name", .type = CONF_TEXT, .offset = STEP(name), .flags = CONF_REQUIRED,
      .doc = "what messages, reports and parameter names (name.param) call it" },
    { .name = "kernel", .type = CONF_TEXT, .offset = STEP(kernel), .flags = CONF_REQUIRED,
      .doc = "a kernel of recon-run --list" },
    { .name = "in", .type = CONF_MAP, .offset = STEP(in), .doc = "port = \"slot\": takes a slot of another name" },
    { .name = "out", .type = CONF_MAP, .offset = STEP(out), .doc = "port = \"slot\": gives a slot another name" },
    { .name = "params", .type = CONF_MAP, .offset = STEP(params), .doc = "values of the kernel's parameters" },
    { .name = "", .type = CONF_LINE, .offset = STEP(line), .flags = CONF_HIDDEN },
    { 0 },
};

#define PIPE(m) offsetof(struct pipeline, m)
const struct conf_row pipeline_rows[] = {
    { .name = "version", .type = CONF_INT, .offset = PIPE(version), .flags = CONF_REQUIRED, .doc = "1" },
    { .name = "name", .type = CONF_TEXT, .offset = PIPE(name), .doc = "the name in reports; default: of the file" },
    { .name = "doc", .type = CONF_TEXT, .offset = PIPE(doc), .doc = "one sentence for people" },
    { .name = "steps", .type = CONF_LIST, .offset = PIPE(steps), .sub = step_rows, .size = sizeof(struct step),
      .flags = CONF_REQUIRED, .doc = "the steps, run in this order" },
    { 0 },
};

char *pipeline_path(const char *name)
{
    char *relative, *path;

    if (strchr(name, '/') || str_ends(name, ".conf"))
        return xstrdup(name);
    relative = xasprintf("share/recon/pipelines/%s.conf", name);
    path = path_part(relative);
    free(relative);
    return path;
}

static bool name_fits(const char *s)
{
    if (!isalnum((unsigned char)*s))
        return false;
    for (; *s; s++)
        if (!isalnum((unsigned char)*s) && *s != '-' && *s != '_')
            return false;
    return true;
}

static int check_steps(const struct pipeline *p, struct err *err)
{
    if (p->version != PIPELINE_VERSION)
        return err_set(err, CODE_USAGE, "%s: version %lld, this recon-run reads version %d", p->path,
                       (long long)p->version, PIPELINE_VERSION);
    if (!p->steps.n)
        return err_set(err, CODE_USAGE, "%s: 'steps' is empty", p->path);
    for (size_t i = 0; i < p->steps.n; i++) {
        const struct step *s = &p->steps.v[i];

        if (!name_fits(s->name))
            return err_set(err, CODE_USAGE, "%s:%d: step name '%s' wants letters, digits, '-' and '_'", p->path,
                           s->line, s->name);
        for (size_t j = 0; j < i; j++)
            if (str_eq(p->steps.v[j].name, s->name))
                return err_set(err, CODE_USAGE, "%s:%d: step name '%s' stands already on line %d", p->path, s->line,
                               s->name, p->steps.v[j].line);
    }
    return 0;
}

int pipeline_load(const char *path, struct pipeline *ret, struct err *err)
{
    struct conf *c = conf_load(path, err);
    int rc;

    *ret = (struct pipeline){ 0 };
    if (!c) {
        if (err && (err->code == CODE_NOTFOUND || err->code == CODE_PERM || err->code == CODE_IO))
            err->code = CODE_USAGE;
        return -1;
    }
    rc = conf_bind(c, pipeline_rows, ret, err);
    conf_free(c);
    ret->path = xstrdup(path);
    if (rc == 0 && !ret->name) {
        const char *base = path_base(path);

        ret->name = xstrndup(base, strlen(base) - (str_ends(base, ".conf") ? strlen(".conf") : 0));
    }
    if (rc == 0)
        rc = check_steps(ret, err);
    if (rc)
        pipeline_release(ret);
    return rc;
}

void pipeline_release(struct pipeline *p)
{
    for (size_t i = 0; i < p->steps.n; i++)
        conf_map_release(&p->steps.v[i].origins);
    conf_release(pipeline_rows, p);
    free(p->path);
    *p = (struct pipeline){ 0 };
}

int pipeline_set(struct pipeline *p, const char *key, const char *value, const char *origin, struct err *err)
{
    const char *dot = strchr(key, '.'), *near;
    char *step = xstrndup(key, dot ? (size_t)(dot - key) : strlen(key));
    struct step *found = NULL;
    int rc = -1;

    for (size_t i = 0; i < p->steps.n; i++)
        if (str_eq(p->steps.v[i].name, step))
            found = &p->steps.v[i];
    if (!dot || !dot[1]) {
        err_set(err, CODE_USAGE, "%s: '%s' is no step.parameter, such as fuse.voxel", origin, key);
    } else if (!found) {
        near = p->steps.n ? str_nearest(step, &p->steps.v[0].name, sizeof(*p->steps.v), p->steps.n) : NULL;
        err_set(err, CODE_USAGE, "%s: pipeline '%s' has no step '%s'%s%s%s", origin, p->name, step,
                near ? ", the nearest is '" : "", near ? near : "", near ? "'" : "");
    } else {
        conf_map_set(&found->params, dot + 1, value, CONF_KIND_TEXT);
        conf_map_set(&found->origins, dot + 1, origin, CONF_KIND_TEXT);
        for (size_t i = 0; i < found->params.n; i++)
            if (str_eq(found->params.v[i].name, dot + 1))
                found->params.v[i].line = 0; /* not from the file: read loosely */
        rc = 0;
    }
    free(step);
    return rc;
}

int pipeline_set_as(struct pipeline *p, const char *key, const char *value, const char *what, struct err *err)
{
    char *origin = xasprintf("%s '%s'", what, key);
    int rc = pipeline_set(p, key, value, origin, err);

    free(origin);
    return rc;
}

int pipeline_set_all(struct pipeline *p, const struct conf_map *values, const char *what, struct err *err)
{
    for (size_t i = 0; i < values->n; i++)
        if (pipeline_set_as(p, values->v[i].name, values->v[i].value, what, err))
            return -1;
    return 0;
}
