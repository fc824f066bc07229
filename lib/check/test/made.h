/* A case made by hand, for the unit tests of rules. */
#ifndef RECON_CHECK_MADE_H
#define RECON_CHECK_MADE_H

#include "config.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <stdlib.h>
#include "check/check_priv.h"

#define MADE static __attribute__((unused))

/* A case made by hand: one closure whose [0] is the program, and facts of a healthy H100 node. */
struct scene {
    struct resolution r;
    struct facts f;
    struct pin p;
    struct strv received;
    struct check_case c;
    struct findings out;
};

MADE struct closure *closure(struct scene *s)
{
    return &s->r.closures.v[0];
}

/* needs: "FILE:VERSION FILE:VERSION"; offers: "V V". */
MADE struct library *add(struct scene *s, const char *soname, const char *path, enum why why, size_t needed_by,
                           const char *needs, const char *offers)
{
    struct library *l = VEC_ADD(&closure(s)->libs);
    struct strv list = { 0 };

    l->soname = xstrdup(soname);
    l->path = xstrdup(path);
    l->why = why;
    l->needed_by = needed_by;
    l->found_in = SIZE_MAX;
    l->object.path = xstrdup(path);
    l->object.soname = xstrdup(soname);
    l->object.has_versym = true;
    if (needs)
        strv_split(&list, needs, " ");
    for (size_t i = 0; i < list.n; i++) {
        char *colon = strchr(list.v[i], ':');
        bool weak = list.v[i][0] == '?';

        *colon = 0;
        object_add_need(&l->object, list.v[i] + weak, colon + 1, weak);
    }
    strv_release(&list);
    if (offers)
        strv_split(&list, offers, " ");
    for (size_t i = 0; i < list.n; i++)
        object_add_version(&l->object, list.v[i]);
    strv_release(&list);
    *VEC_ADD(&closure(s)->edges) = (struct edge){ needed_by, closure(s)->libs.n - 1, xstrdup(soname) };
    strv_add(&closure(s)->libs.v[needed_by].object.needed, soname);
    return &closure(s)->libs.v[closure(s)->libs.n - 1];
}

MADE void image(struct library *l, struct gpu_image i)
{
    *VEC_ADD(&l->object.images) = i;
    l->object.images.containers = i.container + 1;
}

MADE void begin(struct scene *s)
{
    static const char *const assumed[] = {
        "gpu=9.0", "driver.kernel_module=570.211.01", "driver.cuda=12.8", "os.glibc=2.36",
        "toolkits=/usr/local/cuda-12.8", "toolkit_places=/usr/local", "limits.memlock=-1", "limits.shm_mib=64000",
        "limits.open_files=4096", "limits.tmp_mib=90000", "cpu.isa=x86-64-v3",
    };

    memset(s, 0, sizeof(*s));
    facts_minimal(&s->f);
    for (size_t i = 0; i < COUNT(assumed); i++)
        assert_int_equal(facts_assume(&s->f, assumed[i], NULL), 0);
    free(s->f.gpus.v[0].name);
    s->f.gpus.v[0].name = xstrdup("NVIDIA H100");
    free(s->f.driver.source);
    s->f.driver.source = xstrdup("nvml");
    free(s->f.node);
    s->f.node = xstrdup("gpu017");
    VEC_ADD(&s->r.closures);
    add(s, "app", "/opt/app/bin/app", WHY_PATH, 0, "libc.so.6:GLIBC_2.34", NULL);
    add(s, "libc.so.6", "/lib/libc.so.6", WHY_CACHE, 0, NULL, "GLIBC_2.2.5 GLIBC_2.34 GLIBC_2.36");
    strv_release(&closure(s)->libs.v[0].object.needed);
    s->c = (struct check_case){ .facts = &s->f, .resolution = &s->r };
}

/* Runs all rules; what is not-checked is left out of the list but counted. */
MADE size_t judge(struct scene *s)
{
    size_t kept = 0;

    findings_release(&s->out);
    check(&s->c, NULL, &s->out);
    for (size_t i = 0; i < s->out.n; i++)
        kept += !str_eq(s->out.v[i].rule, "not-checked");
    return kept;
}

MADE const struct finding *only(struct scene *s, const char *rule)
{
    struct str t = { 0 };

    if (judge(s) == 1 && str_eq(s->out.v[0].rule, rule))
        return &s->out.v[0];
    findings_text(&s->out, true, false, &t);
    fail_msg("wanted %s alone, got:\n%s", rule, t.len ? t.s : "nothing");
    return NULL;
}

MADE void says(const struct finding *f, const char *text)
{
    if (!strstr(f->text, text))
        fail_msg("'%s' lacks '%s'", f->text, text);
}

MADE const char *not_checked(const struct scene *s, const char *rule)
{
    for (size_t i = 0; i < s->out.n; i++)
        if (str_eq(s->out.v[i].rule, "not-checked") && str_eq(s->out.v[i].object, rule))
            return s->out.v[i].text;
    return NULL;
}

MADE void end(struct scene *s)
{
    closure_release(closure(s));
    free(s->r.closures.v);
    facts_release(&s->f);
    conf_release(pin_rows, &s->p);
    strv_release(&s->received);
    findings_release(&s->out);
}

MADE void pin_variable(struct scene *s, const char *name, enum pin_how how, const char *value)
{
    if (!s->c.pin)
        conf_defaults(pin_rows, &s->p);
    s->c.pin = &s->p;
    *VEC_ADD(&s->p.variables) = (struct pin_variable){ xstrdup(name), how, xstrdup(value) };
}

#endif
