#include "config.h"
#include "check/check_priv.h"

#include <stdlib.h>

static bool of_system(const struct resolution *r, const char *name)
{
    for (size_t i = 0; i < r->closures.n; i++)
        for (size_t j = 0; j < r->closures.v[i].libs.n; j++) {
            const struct library *l = &r->closures.v[i].libs.v[j];

            if (str_eq(l->soname, name))
                return library_of_system(l) || (l->why == WHY_PATH && j);
        }
    return false;
}

static bool pinned(const struct pin *p, const char *soname)
{
    for (size_t i = 0; i < p->objects.n; i++)
        if (str_eq(p->objects.v[i].soname, soname))
            return true;
    return false;
}

/* What a library that is found nowhere would have brought is not loaded either: that is told once, by lib-not-found. */
static bool lost_with_another(const struct resolution *r, const char *name)
{
    bool missing = false;

    for (size_t i = 0; i < r->closures.n; i++)
        for (size_t j = 0; j < r->closures.v[i].libs.n; j++) {
            const struct library *l = &r->closures.v[i].libs.v[j];

            if (str_eq(l->soname, name))
                return false;
            missing = missing || l->why == WHY_NOT_FOUND || l->corrupt;
        }
    return missing;
}

static int eval(const struct check_case *c, struct findings *out, struct err *err)
{
    struct pin_differences list = { 0 };

    (void)err;
    if (c->resolution->reused || c->elsewhere)
        return 0; /* nothing changed; or another node's files are not here */
    pin_compare(c->pin, c->resolution, case_env(c), false, &list);
    for (size_t i = 0; i < list.n; i++) {
        const struct pin_difference *d = &list.v[i];
        bool system = of_system(c->resolution, d->object);

        if (str_eq(d->rule, "lib-changed") && !lost_with_another(c->resolution, d->object) &&
            (!system || pinned(c->pin, d->object))) /* the system adds its own */
            finding_explain(findings_add(out, "lib-changed", system ? LEVEL_NOTE : LEVEL_WARN, SCOPE_NODE,
                                         d->object, "%s", d->text),
                            NULL,
                            system ? "the node's system was updated, or is another than at capture"
                                   : "it was installed again or another copy comes first since the capture",
                            "recon-pin verify PIN, then capture the pin again if the new one is meant");
    }
    pin_differences_release(&list);
    return 0;
}

const struct rule rule_lib_changed = {
    .name = "lib-changed",
    .doc = "a library resolves to another file or build than pinned (path, build-id, size); a note "
           "for the system's own libraries",
    .level = LEVEL_WARN,
    .scope = SCOPE_NODE,
    .inputs = CHECK_PIN | CHECK_RESOLUTION,
    .eval = eval,
};
