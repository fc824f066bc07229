#include "config.h"
#include "variants.h"

#include <stdlib.h>

struct attempt {
    size_t body;
    struct resolution r;
    struct findings found;
};

static void judge(const struct variants *v, size_t body, struct attempt *ret)
{
    const struct pin *p = pin_body(v->pin, body);
    struct check_case c = v->c;
    struct err err = { 0 };

    *ret = (struct attempt){ .body = body };
    c.restored = c.restored || pin_bodies(v->pin) > 1; /* only the launcher takes a variant, and it restores the environment */
    c.pin = p;
    c.resolution = resolve(p, v->given, v->root, v->env, &ret->r, &err) ? NULL : &ret->r;
    if (c.resolution && v->symbols)
        v->symbols(&ret->r, p, v->root, c.facts ? &c.facts->toolkits : NULL);
    check(&c, v->skip, &ret->found);
    if (!c.resolution) {
        findings_add(&ret->found, "not-checked", LEVEL_NOTE, SCOPE_NODE, "resolve", "%s", err.text);
        ret->found.not_checked++;
    }
}

static const char *name_of_body(const struct pin *p, size_t body)
{
    const char *name = pin_body(p, body)->name;

    return name ? name : body ? "unnamed" : "default";
}

static const struct finding *first_error(const struct findings *l)
{
    for (size_t i = 0; i < l->n; i++)
        if (l->v[i].level == LEVEL_ERROR)
            return &l->v[i];
    return NULL;
}

static void tell(const struct variants *v, const struct attempt *tried, size_t n, size_t taken, struct findings *ret)
{
    const char *name = name_of_body(v->pin, tried[taken].body);

    findings_add(ret, "variant", LEVEL_NOTE, SCOPE_NODE, name, "variant '%s' of %zu is taken%s: program '%s'", name,
                 pin_bodies(v->pin), first_error(&tried[taken].found) ? ", though none is without error" : "",
                 pin_body(v->pin, tried[taken].body)->objects.v[0].path);
    for (size_t i = 0; i < n; i++) {
        const struct finding *f = first_error(&tried[i].found);

        name = name_of_body(v->pin, tried[i].body);
        if (i != taken && f)
            findings_add(ret, "variant", LEVEL_NOTE, SCOPE_NODE, name, "variant '%s' is not taken: %s: %s", name, f->rule, f->text);
    }
}

size_t variants_judge(const struct variants *v, struct resolution *ret_resolution, struct findings *ret)
{
    size_t n = pin_bodies(v->pin), tried = 0, taken = SIZE_MAX, body;
    size_t *order = xcalloc(n, sizeof(*order));
    struct attempt *all = xcalloc(n, sizeof(*all));

    if (n > 1 && v->c.facts)
        variants_order(v->pin, v->c.facts, order);
    for (; tried < n && taken == SIZE_MAX; tried++) {
        judge(v, order[tried], &all[tried]);
        if (findings_status(&all[tried].found) == 0)
            taken = tried;
    }
    for (size_t i = 0; i < tried && taken == SIZE_MAX; i++)
        if (findings_status(&all[i].found) == CODE_NODE)
            taken = i;
    taken = taken == SIZE_MAX ? 0 : taken;
    if (n > 1)
        tell(v, all, tried, taken, &all[taken].found);
    body = all[taken].body;
    *ret_resolution = all[taken].r;
    *ret = all[taken].found;
    for (size_t i = 0; i < tried; i++)
        if (i != taken) {
            resolution_release(&all[i].r);
            findings_release(&all[i].found);
        }
    free(all);
    free(order);
    return body;
}
