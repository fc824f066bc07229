/* Containers: the command line that stands before the launcher. */
#include "config.h"
#include "job/job.h"

#include <stdlib.h>

/* "docker://..." of apptainer, "nvcr.io#nvidia/pytorch:24.01" of enroot; a path has neither. */
bool container_is_file(const struct spec_container *c)
{
    return c->image && !strstr(c->image, "://") && (c->kind != CONTAINER_PYXIS || *c->image == '/' || *c->image == '.');
}

bool container_unpinned(const struct spec_container *c)
{
    return c->image && !container_is_file(c) && !strstr(c->image, "@sha256:");
}

static void add_all(struct strv *ret, const struct strv *l)
{
    for (size_t i = 0; i < l->n; i++)
        strv_add(ret, l->v[i]);
}

static char *joined(const struct spec_container *c, const struct strv *binds, bool both_sides)
{
    const struct strv *lists[] = { binds, &c->bind };
    struct str t = { 0 };

    for (size_t k = 0; k < COUNT(lists); k++)
        for (size_t i = 0; lists[k] && i < lists[k]->n; i++) {
            const char *b = lists[k]->v[i];

            if (both_sides && !strchr(b, ':'))
                str_addf(&t, "%s%s:%s", t.len ? "," : "", b, b);
            else
                str_addf(&t, "%s%s", t.len ? "," : "", b);
        }
    return t.len ? str_take(&t) : NULL;
}

static void program(const struct spec_container *c, const char *name, struct strv *ret)
{
    if (c->command.n)
        add_all(ret, &c->command);
    else
        strv_add(ret, name);
}

/* Source: apptainer-exec(1); --nv shows the host's driver inside. */
static void apptainer(const struct spec_container *c, const struct strv *binds, struct strv *ret)
{
    char *all = joined(c, binds, false);

    program(c, "apptainer", ret);
    strv_add(ret, "exec");
    strv_add(ret, "--nv");
    if (all) {
        strv_add(ret, "--bind");
        strv_add(ret, all);
    }
    add_all(ret, &c->options);
    strv_add(ret, c->image);
    free(all);
}

/* Source: pyxis' own --help of srun; mounts name both sides. */
static void pyxis(const struct spec_container *c, const struct strv *binds, struct strv *ret)
{
    char *all = joined(c, binds, true);

    program(c, "srun", ret);
    strv_addf(ret, "--container-image=%s", c->image);
    if (all)
        strv_addf(ret, "--container-mounts=%s", all);
    add_all(ret, &c->options);
    free(all);
}

/* The site's own: {image} and {binds} are filled in. */
static void command(const struct spec_container *c, const struct strv *binds, struct strv *ret)
{
    char *all = joined(c, binds, false);

    for (size_t i = 0; i < c->command.n; i++) {
        const char *arg = c->command.v[i];

        strv_add(ret, str_eq(arg, "{image}") ? c->image : str_eq(arg, "{binds}") ? all ? all : "" : arg);
    }
    add_all(ret, &c->options);
    free(all);
}

void container_argv(const struct spec_container *c, const struct strv *binds, struct strv *ret)
{
    static void (*const of[])(const struct spec_container *, const struct strv *, struct strv *) = {
        [CONTAINER_APPTAINER] = apptainer, [CONTAINER_PYXIS] = pyxis, [CONTAINER_COMMAND] = command,
    };

    if (c->kind > CONTAINER_NONE)
        of[c->kind](c, binds, ret);
}
