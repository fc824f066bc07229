/* Maps, apart from what needs libconfig, so that a module that only looks things up does not carry it. */
#include "config.h"

#include <stdlib.h>
#include "conf/conf.h"

const char *conf_map_get(const struct conf_map *m, const char *name)
{
    for (size_t i = 0; i < m->n; i++)
        if (str_eq(m->v[i].name, name))
            return m->v[i].value;
    return NULL;
}

void conf_map_set(struct conf_map *m, const char *name, const char *value, enum conf_kind kind)
{
    struct conf_pair *p = NULL;

    for (size_t i = 0; i < m->n; i++)
        if (str_eq(m->v[i].name, name))
            p = &m->v[i];
    if (!p) {
        p = VEC_ADD(m);
        p->name = xstrdup(name);
    }
    free(p->value);
    p->value = xstrdup(value);
    p->kind = kind;
}

void conf_map_release(struct conf_map *m)
{
    for (size_t i = 0; i < m->n; i++) {
        free(m->v[i].name);
        free(m->v[i].value);
    }
    free(m->v);
    *m = (struct conf_map){ 0 };
}
